"""A study's records and predictions in one Parquet file, for a repository or an archive.

One row per training: its place below the results folder, its digest, its record as JSON, and its
predictions as a list of rows. Checkpoints and logs stay behind. The footer says of which study and
inputs they are, so that tables and figures can be made where neither data nor models are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tasktransfer.config import CommonConfig
from tasktransfer.core.nodes import Stage
from tasktransfer.datasets import get_task
from tasktransfer.errors import RecordError
from tasktransfer.files import json_text, replacing
from tasktransfer.operate.offered import check_files, offered, places
from tasktransfer.results.predictions import (
    COLUMNS,
    Prediction,
    read_predictions,
    rows_of,
    write_predictions,
)
from tasktransfer.results.records import Record, parse_record, read_record, write_record
from tasktransfer.results.revisions import remember_revisions
from tasktransfer.results.state import PREDICTIONS, RECORD
from tasktransfer.results.study import Study
from tasktransfer.tables.numbers import counted

SCHEMA_VERSION = 1
_FOOTER = b"tasktransfer-pack"
_ROW = pa.struct([pa.field(f.name, f.type, f.nullable) for f in COLUMNS])
SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("digest", pa.string(), nullable=False),
        pa.field("record", pa.string(), nullable=False),
        pa.field("predictions", pa.list_(_ROW), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Pack:
    """What a file holds. ``facts``: its footer; ``table``: columns as in ``SCHEMA``."""

    file: Path
    facts: Mapping[str, Any]
    table: pa.Table


def pack_results(
    study: Study,
    out: Path,
    *,
    provenance: str = "",
    with_text: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Write the finished trainings of a study into one file, atomically.

    Args:
        study: its inputs must be known, or remembered.
        out: the Parquet file.
        provenance: where the data come from and under which licences, kept in the footer.
        with_text: take answers that are text, and no label, of a task; refused otherwise, since
            they may quote the dialogues.
        say: told what is left out.

    Returns:
        ``file``, ``trainings`` packed, ``lacking`` of the study's, ``bytes``.

    Raises:
        RecordError: nothing is finished, a record is damaged, or an answer is no label.
    """
    wanted = study.plan.by_digest
    rows = []
    for place in places(Path(study.config.results)):
        node = wanted.get(place.digest)
        if not isinstance(node, Stage) or not (place.folder / RECORD).is_file():
            continue
        told = offered(place, node)
        check_files(place, told)
        rows.append(_row(place.folder, place.path, with_text=with_text))
    if not rows:
        raise RecordError(f"{study.config.results}: no training of {study.config_file} is finished")
    lacking = len(study.plan.stages) - len(rows)
    if lacking:
        say(f"{counted(lacking, 'training')} of {study.config_file} not finished, and left out")
    facts = {
        "schema": SCHEMA_VERSION,
        "study": study.config.study,
        "data": dict(study.revisions.data),
        "models": {name: model.weights for name, model in study.revisions.models.items()},
        "provenance": provenance,
    }
    table = pa.Table.from_pylist(rows, schema=SCHEMA.with_metadata({_FOOTER: json.dumps(facts)}))
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as part:
        pq.write_table(table, part, compression="zstd", compression_level=19)
        size = part.stat().st_size
    return {"file": str(out), "trainings": len(rows), "lacking": lacking, "bytes": size}


def _row(folder: Path, path: str, *, with_text: bool) -> dict[str, Any]:
    record = read_record(folder / RECORD)
    rows = pa.table({name: [] for name in COLUMNS.names}, schema=COLUMNS)
    if record["predictions"] is not None:
        rows = read_predictions(folder / PREDICTIONS, record["predictions"])
    if not with_text:
        _refuse_text(folder / PREDICTIONS, record, rows)
    return {
        "path": path,
        "digest": record["stage"]["digest"],
        "record": json.dumps(record),
        "predictions": rows.to_pylist(),
    }


def _refuse_text(file: Path, record: Record, rows: pa.Table) -> None:
    """Answers of a task with labels are labels; those of others are taken from the dialogues."""
    for name in record["test"]:
        labels = set(get_task(record["stage"]["dataset"], name).labels)
        of_task = rows_of(rows, name)
        for column in ("prediction", "gold"):
            for answers in of_task[column].to_pylist():
                if not labels.issuperset(answers):
                    raise RecordError(
                        f"{file}: {name}: the {column} {answers[0][:40]!r} is no label of the task "
                        "and may quote a dialogue; where that may be passed on: --with-text"
                    )


# --- and back -----------------------------------------------------------------------------------


def read_pack(file: Path) -> Pack:
    """Read a packed study.

    Raises:
        RecordError: it cannot be read, is no such file, or of another schema.
    """
    try:
        table = pq.read_table(file)
    except (OSError, pa.ArrowException) as error:
        raise RecordError(f"{file}: cannot be read as Parquet: {error}") from error
    try:
        facts = json_text.loads((table.schema.metadata or {})[_FOOTER])
    except (KeyError, ValueError) as error:
        raise RecordError(f"{file}: was not written by `tasktransfer pack`") from error
    if facts.get("schema") != SCHEMA_VERSION or table.schema.names != SCHEMA.names:
        raise RecordError(
            f"{file}: schema {facts.get('schema')!r}, expected {SCHEMA_VERSION}: it was packed by "
            "another version of tasktransfer"
        )
    return Pack(file, facts, table)


@contextmanager
def unpacked(pack: Pack, config: CommonConfig) -> Iterator[Path]:
    """A results folder with the trainings of a packed study, for as long as the context lasts; the
    revisions of its inputs are remembered for the config's study, unless they are known.

    Raises:
        RecordError: a record or prediction in it is damaged, or of another place.
    """
    remember_revisions(config, pack.facts["data"], pack.facts["models"])
    with TemporaryDirectory(prefix="tasktransfer-") as folder:
        for row in _rows(pack.table):
            _write(pack.file, Path(folder), row)
        yield Path(folder)


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=1):
        yield from batch.to_pylist()


def _write(file: Path, results: Path, row: dict[str, Any]) -> None:
    inner = Path(row["path"])
    if inner.is_absolute() or ".." in inner.parts:
        raise RecordError(f"{file}: {row['path']}: leads out of the results folder")
    record = parse_record(file / row["path"], row["record"].encode())
    folder = results / inner
    folder.mkdir(parents=True)
    if record["predictions"] is not None:
        stage = record["stage"]
        predictions = [
            Prediction(**each, prediction=tuple(said), gold=tuple(right))
            for each in row["predictions"]
            for said, right in [(each.pop("prediction"), each.pop("gold"))]
        ]
        written = write_predictions(
            folder / PREDICTIONS, predictions, digest=stage["digest"], dataset=stage["dataset"]
        )
        record["predictions"] = {**written, "rows": record["predictions"]["rows"]}
    write_record(folder / RECORD, record)
