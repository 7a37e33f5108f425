"""The study's tables on disk: collect them from records, write them, read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.collect import Tables, collect_runs
from tasktransfer.designs.transfer.collect.missing import BROKEN
from tasktransfer.designs.transfer.collect.planned import (
    MORE_BASELINE_SEEDS,
    SOURCES_CHOSEN_BY,
    Expected,
    StudyPlan,
)
from tasktransfer.errors import RecordError
from tasktransfer.results.state import RECORD
from tasktransfer.results.tallies import Checks
from tasktransfer.tables.metadata import Metadata
from tasktransfer.tables.store import read_frame, write_frame

CHECKED = "checked.json"
"""Beside the tables: which predictions were held against their records. It may be deleted."""

SHOWN = 12
"""Holes that an error lists; the others are counted."""


def collect(
    results: Path, study: StudyPlan, out: Path, *, complete: bool = False
) -> tuple[Tables, Metadata]:
    """Collect a study's records into ``out`` as Parquet.

    Args:
        results: the results folder; the plan's record paths are relative to it.
        study: exactly the records of its runs are read.
        out: folder of the tables. ``checked.json`` there saves checking predictions again that
            have not changed.
        complete: refuse holes, and write nothing then.

    Raises:
        RecordError: no record is usable, records cannot be compared, or
            ``complete`` and a planned training left no usable record.
    """
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
    metadata = Metadata(
        study=study.study,
        config_digest=study.config_digest,
        synthetic=origin.synthetic,
        real=list(origin.real),
        records=origin.records,
        shorts=study.shorts,
        order=study.order,
        facts=_facts(study),
        cuts=study.cuts,
    )
    write_tables(out, tables, metadata)
    checks.write(out / CHECKED)
    return tables, metadata


def _facts(study: StudyPlan) -> dict[str, str]:
    facts = {
        SOURCES_CHOSEN_BY: study.sources_chosen_by,
        MORE_BASELINE_SEEDS: " ".join(map(str, study.more_baseline_seeds)),
    }
    return {key: value for key, value in facts.items() if value}


def more_baseline_seeds(metadata: Metadata) -> tuple[int, ...]:
    """The seeds of baselines that the study has beside those of its runs."""
    return tuple(map(int, metadata.facts.get(MORE_BASELINE_SEEDS, "").split()))


def holes_of(tables: Tables, runs: Iterable[Expected]) -> list[str]:
    """A line for each planned run without a usable record, and for each training before one whose
    record is damaged."""
    missing = pd.concat([tables.missing, tables.control_missing], ignore_index=True)
    said = zip(*(missing[key] for key in ("path", "reason", "state", "error")), strict=True)
    lines = [error if state == BROKEN else f"{path}: {why}" for path, why, state, error in said]
    before = {f"{folder}/{RECORD}" for run in runs for folder in run.stages[:-1]}
    problems = zip(tables.problems["path"], tables.problems["error"], strict=True)
    return list(dict.fromkeys([*lines, *(text for path, text in problems if path in before)]))


def write_tables(folder: Path, tables: Tables, metadata: Metadata) -> None:
    """Write each frame as ``<folder>/<table>.parquet``, each atomically."""
    write_frames(folder, {name: getattr(tables, name) for name in columns.TABLES}, metadata)


def write_frames(folder: Path, frames: Mapping[str, pd.DataFrame], metadata: Metadata) -> None:
    """Write frames by table name (see ``columns``), each atomically and with the same footer."""
    for name, frame in frames.items():
        write_frame(folder / f"{name}.parquet", frame, columns.ALL[name], metadata)


def read_tables(folder: Path) -> tuple[Tables, Metadata]:
    """Read what ``write_tables`` wrote.

    Raises:
        RecordError: a table is absent, damaged, or was written by another version of the columns.
    """
    frames: dict[str, pd.DataFrame] = {}
    collections: list[Metadata] = []
    for name, described in columns.TABLES.items():
        frames[name], metadata = read_frame(
            folder / f"{name}.parquet", described, remedy="collect again"
        )
        collections.append(metadata)
    if any(other != collections[0] for other in collections):
        raise RecordError(f"{folder}: the tables are of several collections; collect again")
    return Tables(**frames), collections[0]
