"""All collected and computed results of a study, as data frames.

Entry point for figures, printed tables, the report and notebooks::

    from tasktransfer.designs.transfer.collect.results import read_results

    results = read_results("results/demo/tables")
    results.statistics.cells[["model", "source", "target", "delta", "low", "high"]]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from tasktransfer.designs.transfer import outputs
from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.tables import reference
from tasktransfer.errors import RecordError
from tasktransfer.present.view import View
from tasktransfer.results.metadata import Metadata
from tasktransfer.results.store import read_frame, read_statistic_frame, write_frame
from tasktransfer.results.study import Study


@dataclass(frozen=True)
class Tables:
    """Tables from a study's records. The columns of each frame are in ``columns.TABLES``."""

    runs: pd.DataFrame
    scores: pd.DataFrame
    deltas: pd.DataFrame
    sizes: pd.DataFrame
    missing: pd.DataFrame
    problems: pd.DataFrame
    control_runs: pd.DataFrame
    """Runs of controls, which are not in ``runs``, ``scores`` and ``deltas``."""
    control_missing: pd.DataFrame
    """Planned runs of controls without a usable record, which are not in ``missing``."""
    other_missing: pd.DataFrame
    """Other planned nodes without a usable record, which are not in ``missing``: evaluations of
    prompted models, values of selectors, references, and nodes that are not the end of a run."""


@dataclass(frozen=True)
class Statistics:
    """Intervals and tests. The columns of each frame are in ``columns.STATISTICS``."""

    cells: pd.DataFrame
    summary: pd.DataFrame
    variance: pd.DataFrame
    asymmetry: pd.DataFrame
    agreement: pd.DataFrame
    overlap: pd.DataFrame
    overlap_effect: pd.DataFrame
    control_cells: pd.DataFrame
    controls: pd.DataFrame
    top1: pd.DataFrame
    collapsed: pd.DataFrame


@dataclass(frozen=True)
class Results:
    """A study's tables, statistics and metadata.

    ``lengths``: histogram of utterance and dialogue lengths (columns of
    ``data.stats.length_distributions``); None if the dialogues were never prepared.
    ``reference``: scores of simple predictors (``tables.reference``); None if not computed.
    ``references``: baselines next to references (``statistics.references``); None without any.
    ``control_summary``: means over pairs next to controls (``statistics.control_summary``).
    ``prompted``: scores of prompted models (``statistics.prompted``); None without such models.
    """

    tables: Tables
    statistics: Statistics
    metadata: Metadata
    lengths: pd.DataFrame | None
    reference: pd.DataFrame | None = None
    prompted: pd.DataFrame | None = None
    references: pd.DataFrame | None = None
    control_summary: pd.DataFrame | None = None


LENGTHS, REFERENCED, ASKED, LEARNED = "lengths", "reference", "prompted", "references"
CONTROLLED = "control_summary"
"""Frames that only some studies have: dialogues were available, or such runs are planned."""


def frames_in(results: Results) -> dict[str, pd.DataFrame]:
    """Return every frame by name; frames of dialogues that were never prepared have no rows."""
    absent = pd.DataFrame()
    return {
        **vars(results.tables),
        **vars(results.statistics),
        LENGTHS: absent if results.lengths is None else results.lengths,
        REFERENCED: absent if results.reference is None else results.reference,
        ASKED: absent if results.prompted is None else results.prompted,
        LEARNED: absent if results.references is None else results.references,
        CONTROLLED: absent if results.control_summary is None else results.control_summary,
    }


def results_of(view: View) -> Results:
    """Return the results of a view. Frames that it does not have are empty."""

    def frame(name: str) -> pd.DataFrame:
        return view[name] if name in view else columns.frame(name, [])

    def given(name: str) -> pd.DataFrame | None:
        return view[name] if name in view and len(view[name].columns) else None

    return Results(
        tables=Tables(**{name: frame(name) for name in columns.TABLES}),
        statistics=Statistics(**{name: frame(name) for name in columns.STATISTICS}),
        metadata=view.metadata,
        lengths=given(LENGTHS),
        reference=given(REFERENCED),
        prompted=given(ASKED),
        references=given(LEARNED),
        control_summary=given(CONTROLLED),
    )


def in_view(view: View, results: Results) -> View:
    """Return a view with its frames replaced by those of the results."""
    frames = frames_in(results)
    kept = {name: frames.get(name, view[name]) for name in view}
    return replace(view, frames=kept, metadata=results.metadata)


def frames_of(tables: Tables) -> dict[str, pd.DataFrame]:
    """Return the frames by their tables' names."""
    return {name: getattr(tables, name) for name in columns.TABLES}


def write_frames(folder: Path, frames: Mapping[str, pd.DataFrame], metadata: Metadata) -> None:
    """Write frames by table name (see ``columns``), each atomically and with the same footer."""
    for name, frame in frames.items():
        write_frame(folder / f"{name}.parquet", frame, columns.ALL[name], metadata)


def read_tables(folder: Path) -> tuple[Tables, Metadata]:
    """Read the tables that ``collect`` wrote.

    Raises:
        RecordError: a table is absent, damaged, or was written by another version of the columns.
    """
    frames: dict[str, pd.DataFrame] = {}
    collections: list[Metadata] = []
    for name, described in columns.TABLES.items():
        frames[name], metadata = read_frame(
            folder / f"{name}.parquet", described, remedy="run `tasktransfer collect` again"
        )
        collections.append(metadata)
    if any(other != collections[0] for other in collections):
        raise RecordError(
            f"{folder}: the tables come from several collections; run `tasktransfer collect` again"
        )
    return Tables(**frames), collections[0]


def read_results(folder: str | Path) -> Results:
    """Read ``results/<study>/tables``.

    Raises:
        RecordError: a table is absent, damaged, or was written by another version.
    """
    folder = Path(folder)
    tables, metadata = read_tables(folder)
    frames = {name: read_statistic(folder, name) for name in columns.STATISTICS}
    lengths = folder / "lengths.parquet"
    return Results(
        tables=tables,
        statistics=Statistics(**frames),
        metadata=metadata,
        lengths=read_statistic_frame(lengths) if lengths.exists() else None,
        reference=reference.read(folder / Path(outputs.REFERENCE).name),
        prompted=_read_additional_table(folder, outputs.PROMPTED[0]),
        references=_read_additional_table(folder, outputs.REFERENCES[0]),
        control_summary=_read_additional_table(folder, outputs.CONTROL_SUMMARY[0]),
    )


def read_references(study: Study) -> pd.DataFrame | None:
    """Read a study's table ``references``; None if the study has none.

    Raises:
        RecordError: it is damaged, or was written by another version.
    """
    return _read_additional_table(Path(study.tables), outputs.REFERENCES[0])


def _read_additional_table(folder: Path, table: str) -> pd.DataFrame | None:
    """Read a table that only some studies have; None if it does not exist.

    Raises:
        RecordError: it is damaged, or was written by another version.
    """
    file = folder / f"{table}.parquet"
    if not file.exists():
        return None
    remedy = "run `tasktransfer statistics` again"
    return read_frame(file, columns.ALL[table], remedy)[0]


def read_statistic(folder: Path, table: str) -> pd.DataFrame:
    """Read one of ``columns.STATISTICS``.

    Raises:
        RecordError: it is absent, damaged, or was written by another version.
    """
    remedy = "run `tasktransfer statistics` again"
    return read_frame(folder / f"{table}.parquet", columns.STATISTICS[table], remedy)[0]
