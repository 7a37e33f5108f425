"""A study's records and rows in one Parquet file, for a repository or an archive.

One row per node: its place below the results folder, its digest, its record as JSON, its rows as a
list, and the small files beside it that tables are made of. Tables that are made of the dialogues
themselves are in it too, as they are. Weights, fits, derived data and logs stay behind. The footer
says of which study and inputs they are, so that tables and figures can be made where neither data
nor models are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tasktransfer.config import CommonConfig
from tasktransfer.errors import RecordError
from tasktransfer.files import json_text, replacing, without_sync
from tasktransfer.files.progress import with_progress
from tasktransfer.operate.coded_answers import shareable
from tasktransfer.operate.offered import check_files, offered
from tasktransfer.results.places import node_folders
from tasktransfer.results.probe_rows import PROJECTION
from tasktransfer.results.records import parse_record, write_record
from tasktransfer.results.revisions import remember_revisions
from tasktransfer.results.rows import COLUMNS, read_rows, write_table
from tasktransfer.results.schema import Record
from tasktransfer.results.state import RECORD
from tasktransfer.results.study import Study
from tasktransfer.tables.numbers import counted

SCHEMA_VERSION = 2
_FOOTER = b"tasktransfer-pack"
_ROW = pa.struct([pa.field(f.name, f.type, f.nullable) for f in COLUMNS])
_FILE = pa.struct([pa.field("name", pa.string()), pa.field("content", pa.binary())])
SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("digest", pa.string(), nullable=False),
        pa.field("record", pa.string(), nullable=False),
        pa.field("rows", pa.list_(_ROW), nullable=False),
        pa.field("files", pa.list_(_FILE), nullable=False),
    ]
)
"""``digest`` and ``record`` are empty where the row is no node but a table."""
_COLUMNS_OF = {1: ["path", "digest", "record", "predictions"], SCHEMA_VERSION: SCHEMA.names}
"""Schema → columns. 1: trainings alone."""
_AGAIN = "get the file once more from whoever packed it"
SMALL = (PROJECTION,)
"""Files beside a record that tables are made of."""


@dataclass(frozen=True, slots=True)
class Pack:
    """What a file holds. ``facts``: its footer; ``table``: columns as in ``SCHEMA``, or of an older
    file."""

    file: Path
    facts: Mapping[str, Any]
    table: pa.Table


def pack_results(
    study: Study,
    out: Path,
    *,
    tables: Iterable[str] = (),
    provenance: str = "",
    by: str = "",
    with_text: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Write the finished nodes of a study into one file, atomically.

    Args:
        study: its inputs must be known, or remembered.
        out: the Parquet file.
        tables: files of tables that are made of dialogues, relative to the results folder; those
            that are there are packed.
        provenance: where the data come from and under which licences, kept in the footer.
        by: who made the records, a lab or a person; those that name their maker keep it.
        with_text: take answers that are text, and no label, of a task. Otherwise those of spans
            have codes in place of their words, which score the same (``coded_answers``), and
            others are refused, since they may quote the dialogues.
        say: told what is left out.

    Returns:
        ``file``, ``packed`` by kind of node, ``lacking`` of the study's nodes, ``tables`` packed,
        ``bytes``.

    Raises:
        RecordError: nothing is finished, a record is damaged, or an answer is no label.
    """
    wanted, results = study.plan.by_digest, Path(study.config.results)
    rows, packed = [], dict[str, int]()
    for node_folder in with_progress([*node_folders(results)], "packing"):
        node = wanted.get(node_folder.digest)
        if node is None or not (node_folder.folder / RECORD).is_file():
            continue
        record = offered(node_folder, node)
        check_files(node_folder, record)
        rows.append(
            _row(node_folder.folder, node_folder.path, made_by(record, by), with_text=with_text)
        )
        kind = record["node"]["kind"]
        packed[kind] = packed.get(kind, 0) + 1
    if not rows:
        raise RecordError(f"{study.config.results}: nothing of {study.config_file} is finished")
    lacking = len(study.plan.nodes) - len(rows)
    if lacking:
        say(f"{counted(lacking, 'node')} of {study.config_file} not finished, and left out")
    there = [name for name in tables if (results / name).is_file()]
    rows += [_table(results, name) for name in there]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    facts = {
        "schema": SCHEMA_VERSION,
        "study": study.config.study,
        "data": dict(study.revisions.data),
        "models": {name: model.weights for name, model in study.revisions.models.items()},
        "provenance": provenance,
        "by": by,
        "sha256": {row["path"]: content_digest(row) for row in _rows(table)},
    }
    table = table.replace_schema_metadata({_FOOTER: json.dumps(facts)})
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as part:
        pq.write_table(table, part, compression="zstd", compression_level=19)
        size = part.stat().st_size
    return {
        "file": str(out),
        "packed": packed,
        "lacking": lacking,
        "tables": len(there),
        "bytes": size,
    }


def as_text(seen: Mapping[str, Any]) -> str:
    """What was packed, for people."""
    names = {"stage": "training", "data": "derived dataset"}
    nodes = [counted(count, names.get(kind, kind)) for kind, count in seen["packed"].items()]
    tables = [counted(seen["tables"], "table") + " of dialogues"] * (seen["tables"] > 0)
    return f"{seen['file']}: {', '.join([*nodes, *tables])}, {seen['bytes']:,} bytes\n"


def _row(folder: Path, path: str, record: Record, *, with_text: bool) -> dict[str, Any]:
    rows = COLUMNS.empty_table()
    if record["rows"] is not None:
        file = folder / record["rows"]["file"]
        rows = read_rows(file, record["rows"])
        if not with_text:
            rows = shareable(file, record, rows)
    small = [folder / name for name in SMALL if (folder / name).is_file()]
    return {
        "path": path,
        "digest": record["node"]["digest"],
        "record": json.dumps(record),
        "rows": rows.to_pylist(),
        "files": [{"name": file.name, "content": file.read_bytes()} for file in small],
    }


def made_by(record: Record, by: str) -> Record:
    """A record that names who made it; one that does so already stays."""
    if not by or record["provenance"].get("made_by"):
        return record
    return {**record, "provenance": {**record["provenance"], "made_by": by}}


def _table(results: Path, name: str) -> dict[str, Any]:
    content = (results / name).read_bytes()
    files = [{"name": Path(name).name, "content": content}]
    return {"path": name, "digest": "", "record": "", "rows": [], "files": files}


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
    if table.schema.names != _COLUMNS_OF.get(facts.get("schema")):
        raise RecordError(
            f"{file}: schema {facts.get('schema')!r}, expected 1 or {SCHEMA_VERSION}: it was "
            "packed by another version of tasktransfer"
        )
    return Pack(file, facts, table)


@contextmanager
def unpacked(pack: Pack, config: CommonConfig) -> Iterator[Path]:
    """A results folder with the nodes of a packed study, for as long as the context lasts; the
    revisions of its inputs are remembered for the config's study, unless they are known.

    Raises:
        RecordError: a record or rows in it are damaged, or of another place.
    """
    remember_revisions(config, pack.facts["data"], pack.facts["models"])
    with TemporaryDirectory(prefix="tasktransfer-") as folder:
        _check_whole(pack)
        with without_sync():
            for row in _rows(pack.table):
                _check_content(pack, row)
                _write(pack.file, Path(folder), row)
        yield Path(folder)


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=1):
        yield from batch.to_pylist()


def content_digest(row: Mapping[str, Any]) -> str:
    """SHA-256 of a row of a pack, whatever file it lies in."""
    files = [
        {**each, "content": hashlib.sha256(each["content"]).hexdigest()} for each in row["files"]
    ]
    return hashlib.sha256(json.dumps({**row, "files": files}).encode()).hexdigest()


def _check_whole(pack: Pack) -> None:
    """Refuse a file that lacks some of what was packed."""
    there = {*pack.table["path"].to_pylist()}
    lost = [path for path in pack.facts.get("sha256", ()) if path not in there]
    if lost:
        raise RecordError(f"{pack.file}: {lost[0]}: was packed and is not there any more; {_AGAIN}")


def _check_content(pack: Pack, row: Mapping[str, Any]) -> None:
    """Refuse what is not as it was packed; older packs do not tell."""
    expected = pack.facts.get("sha256")
    if expected is not None and expected.get(row["path"]) != content_digest(row):
        raise RecordError(
            f"{pack.file}: {row['path']}: its SHA-256 is not the one that was packed: damaged, or "
            f"changed since; {_AGAIN}"
        )


def _write(file: Path, results: Path, row: dict[str, Any]) -> None:
    inner = Path(row["path"])
    if inner.is_absolute() or ".." in inner.parts:
        raise RecordError(f"{file}: {row['path']}: leads out of the results folder")
    folder = results / inner
    if not row["record"]:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.write_bytes(row["files"][0]["content"])
        return
    record = parse_record(file / row["path"], row["record"].encode())
    folder.mkdir(parents=True)
    for each in row.get("files", ()):
        (folder / Path(each["name"]).name).write_bytes(each["content"])
    if record["rows"] is not None:
        node, count = record["node"], record["rows"]["rows"]
        written = write_table(
            folder, _table_of_rows(row), digest=node["digest"], dataset=node["dataset"]
        )
        record["rows"] = {**written, "rows": count}
    write_record(folder / RECORD, record)


def _table_of_rows(row: Mapping[str, Any]) -> pa.Table:
    """The rows that are packed of a node; older files call them predictions, all of test splits."""
    rows = row["rows"] if "rows" in row else [_older(each) for each in row["predictions"]]
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def _older(row: dict[str, Any]) -> dict[str, Any]:
    named = {"cluster" if name == "dialogue_id" else name: value for name, value in row.items()}
    return {"split": "test", **named}
