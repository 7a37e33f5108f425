"""The study's tables on disk: collect them from records, write them, read them.

Parquet with everything a reader needs in the footer: study, config digest, package version,
whether the data are synthetic, number of records, short names, and each column's meaning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import tasktransfer
from tasktransfer import json_text
from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.collect import Origin, Tables, collect_runs
from tasktransfer.designs.transfer.collect.missing import BROKEN
from tasktransfer.designs.transfer.collect.planned import Expected
from tasktransfer.errors import RecordError
from tasktransfer.files import replacing
from tasktransfer.results.state import RECORD
from tasktransfer.results.tallies import Checks

CHECKED = "checked.json"
"""Beside the tables: which predictions were held against their records. It may be deleted."""

SHOWN = 12
"""Holes that an error lists; the others are counted."""

_FOOTER_KEY = b"tasktransfer"


@dataclass(frozen=True, slots=True)
class Metadata:
    """What the footer of every table says."""

    study: str
    config_digest: str
    synthetic: bool
    """Whether dialogues of any dataset are generated."""
    records: int
    """Number of records behind ``runs``."""
    version: str = tasktransfer.__version__
    shorts: Mapping[str, str] = field(default_factory=dict)
    """Task → the short name that figures show."""
    order: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The study's order of "dataset", "model", "algorithm" and "task": rows, panels and axes keep
    it, whichever runs are missing."""
    real: Sequence[str] = field(default_factory=list)
    """Datasets whose dialogues are real though those of another are generated."""

    def is_synthetic(self, dataset: str) -> bool:
        """Whether a dataset's dialogues are generated."""
        return self.synthetic and dataset not in self.real


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """The part of a plan file that analysis reads."""

    study: str
    config_digest: str
    shorts: Mapping[str, str]
    runs: tuple[Expected, ...]


def collect(
    results: Path, plan: Path, out: Path, *, complete: bool = False
) -> tuple[Tables, Metadata]:
    """Collect a study's records into ``out`` as Parquet.

    Args:
        results: the results folder; the plan's record paths are relative to it.
        plan: the plan file (see ``read_plan``); exactly its records are read.
        out: folder of the tables. ``checked.json`` there saves checking predictions again that
            have not changed.
        complete: refuse holes, and write nothing then.

    Raises:
        RecordError: the plan file is wrong, no record is usable, records cannot be compared, or
            ``complete`` and a planned training left no usable record.
    """
    study = read_plan(plan)
    checks = Checks.read(out / CHECKED)
    tables, origin = collect_runs(results, study.runs, checks)
    if not origin.records:
        first = f"; the first: {tables.problems['error'].iloc[0]}" if len(tables.problems) else ""
        raise RecordError(
            f"{results}: no usable record of {len(study.runs)} planned runs{first}; train "
            "something first"
        )
    holes = holes_of(tables, study.runs)
    if complete and holes:
        more = [f"and {len(holes) - SHOWN:,} more"] * (len(holes) > SHOWN)
        raise RecordError(
            f"{results}: {len(holes):,} planned runs or trainings left no usable record, so no "
            f"table was written to {out}; run snakemake again, or collect without --complete:\n  "
            + "\n  ".join([*holes[:SHOWN], *more])
        )
    metadata = _metadata(study, origin)
    write_tables(out, tables, metadata)
    checks.write(out / CHECKED)
    return tables, metadata


def holes_of(tables: Tables, runs: Iterable[Expected]) -> list[str]:
    """A line for each planned run without a usable record, and for each training before one whose
    record is damaged."""
    missing = tables.missing
    said = zip(*(missing[key] for key in ("path", "reason", "state", "error")), strict=True)
    lines = [error if state == BROKEN else f"{path}: {why}" for path, why, state, error in said]
    before = {f"{folder}/{RECORD}" for run in runs for folder in run.stages[:-1]}
    problems = zip(tables.problems["path"], tables.problems["error"], strict=True)
    return list(dict.fromkeys([*lines, *(text for path, text in problems if path in before)]))


def read_plan(path: Path) -> StudyPlan:
    """Read a plan file.

    It is a JSON object ``{"study": str, "config_digest": str, "shorts": {task: short name},
    "runs": [{"dataset", "model", "algorithm", "sources": [task], "target", "seed", "record"}]}``;
    ``record`` is the path of the run's record relative to the results folder. A run may also have
    ``digest``, of the stage that scores it, and ``stages``, the folders of its trainings in their
    order, relative to the results folder; further keys are left alone. The order of the
    runs is the order of rows, panels and axes.

    Raises:
        RecordError: the file is absent or no such object; names the key.
    """
    try:
        value = json_text.loads(path.read_bytes())
        runs = tuple(_expected(run) for run in value["runs"])
        return StudyPlan(value["study"], value["config_digest"], value["shorts"], runs)
    except (OSError, ValueError, TypeError) as error:
        raise RecordError(f"{path}: not a plan file: {error}; write it again") from error
    except KeyError as error:
        raise RecordError(f"{path}: not a plan file: no key {error}; write it again") from error


def _expected(run: Mapping[str, Any]) -> Expected:
    return Expected(
        dataset=run["dataset"],
        model=run["model"],
        algorithm=run["algorithm"],
        sources=tuple(run["sources"]),
        target=run["target"],
        seed=run["seed"],
        record=run["record"],
        digest=run.get("digest", ""),
        stages=tuple(run.get("stages", ())),
    )


def _metadata(study: StudyPlan, origin: Origin) -> Metadata:
    """From the plan, or else from the records themselves."""
    return Metadata(
        study=study.study,
        config_digest=study.config_digest,
        synthetic=origin.synthetic,
        real=list(origin.real),
        records=origin.records,
        shorts=study.shorts,
        order=_order(study.runs),
    )


def _order(runs: Sequence[Expected]) -> dict[str, list[str]]:
    """Names in the order in which the plan first has them; tasks as targets before sources."""
    tasks = [run.target for run in runs] + [source for run in runs for source in run.sources]
    return {
        "dataset": list(dict.fromkeys(run.dataset for run in runs)),
        "model": list(dict.fromkeys(run.model for run in runs)),
        "algorithm": list(dict.fromkeys(run.algorithm for run in runs)),
        "task": list(dict.fromkeys(tasks)),
    }


def write_tables(folder: Path, tables: Tables, metadata: Metadata) -> None:
    """Write each frame as ``<folder>/<table>.parquet``, each atomically."""
    write_frames(folder, {name: getattr(tables, name) for name in columns.TABLES}, metadata)


def write_frames(folder: Path, frames: Mapping[str, pd.DataFrame], metadata: Metadata) -> None:
    """Write frames by table name (see ``columns``), each atomically and with the same footer."""
    footer = {_FOOTER_KEY: json.dumps(asdict(metadata), sort_keys=True).encode()}
    for name, frame in frames.items():
        schema = columns.arrow_schema(name)
        table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
        with replacing(folder / f"{name}.parquet") as part:
            pq.write_table(table.replace_schema_metadata(footer), part, compression="zstd")


def read_tables(folder: Path) -> tuple[Tables, Metadata]:
    """Read what ``write_tables`` wrote.

    Raises:
        RecordError: a table is absent, damaged, or was written by another version of the columns.
    """
    frames = {}
    footers = set()
    for name in columns.TABLES:
        path = folder / f"{name}.parquet"
        try:
            table = pq.read_table(path)
            footers.add((table.schema.metadata or {})[_FOOTER_KEY])
        except (OSError, pa.ArrowException) as error:
            raise RecordError(f"{path}: cannot be read: {error}; collect again") from error
        except KeyError as error:
            raise RecordError(f"{path}: not a table of tasktransfer; collect again") from error
        if table.schema.names != columns.names(name):
            raise RecordError(f"{path}: columns {table.schema.names}; collect again")
        frames[name] = columns.to_frame(table)
    if len(footers) != 1:
        raise RecordError(f"{folder}: the tables are of several collections; collect again")
    return Tables(**frames), Metadata(**json_text.loads(footers.pop()))
