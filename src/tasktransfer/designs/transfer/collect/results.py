"""Everything that was collected and computed of a study, as data frames.

What figures, printed tables, the report and notebooks start from::

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
from tasktransfer.tables.metadata import Metadata
from tasktransfer.tables.store import read_frame, read_statistic_frame, write_frame


@dataclass(frozen=True)
class Tables:
    """What a study's records say. The columns of each frame are in ``columns.TABLES``."""

    runs: pd.DataFrame
    scores: pd.DataFrame
    deltas: pd.DataFrame
    sizes: pd.DataFrame
    missing: pd.DataFrame
    problems: pd.DataFrame
    control_runs: pd.DataFrame
    """Runs of controls; ``runs``, ``scores`` and ``deltas`` have none of them."""
    control_missing: pd.DataFrame
    """Planned runs of controls without a usable record; ``missing`` has none of them."""
    other_missing: pd.DataFrame
    """Everything else of the plan without a usable record: evaluations of prompted models, values
    of selectors, and nodes that no run ends with. ``missing`` has none of them."""


@dataclass(frozen=True)
class Statistics:
    """How sure the numbers are. The columns of each frame are in ``columns.STATISTICS``."""

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
    """A study's tables, its statistics, and who they are of.

    ``lengths``: how many utterances and dialogues have which length (columns of
    ``data.stats.length_distributions``); None where the dialogues were never prepared.
    ``reference``: scores without a model (``tables.reference``); None where they were not made.
    ``prompted``: of models that are only asked (``statistics.prompted``); None where none is.
    """

    tables: Tables
    statistics: Statistics
    metadata: Metadata
    lengths: pd.DataFrame | None
    reference: pd.DataFrame | None = None
    prompted: pd.DataFrame | None = None


LENGTHS, REFERENCED, ASKED = "lengths", "reference", "prompted"
"""Frames that are there only where the dialogues were, or where models are asked."""


def frames_in(results: Results) -> dict[str, pd.DataFrame]:
    """Every frame by name; those of dialogues that were never prepared have no rows."""
    absent = pd.DataFrame()
    return {
        **vars(results.tables),
        **vars(results.statistics),
        LENGTHS: absent if results.lengths is None else results.lengths,
        REFERENCED: absent if results.reference is None else results.reference,
        ASKED: absent if results.prompted is None else results.prompted,
    }


def results_of(view: View) -> Results:
    """The results of a view. Frames that it does not have are empty."""

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
    )


def in_view(view: View, results: Results) -> View:
    """The frames of a view as they are in some results."""
    frames = frames_in(results)
    kept = {name: frames.get(name, view[name]) for name in view}
    return replace(view, frames=kept, metadata=results.metadata)


def frames_of(tables: Tables) -> dict[str, pd.DataFrame]:
    """The frames by their tables' names."""
    return {name: getattr(tables, name) for name in columns.TABLES}


def write_frames(folder: Path, frames: Mapping[str, pd.DataFrame], metadata: Metadata) -> None:
    """Write frames by table name (see ``columns``), each atomically and with the same footer."""
    for name, frame in frames.items():
        write_frame(folder / f"{name}.parquet", frame, columns.ALL[name], metadata)


def read_tables(folder: Path) -> tuple[Tables, Metadata]:
    """Read what ``collect`` wrote.

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
        prompted=read_prompted(folder),
    )


def read_prompted(folder: Path) -> pd.DataFrame | None:
    """The table ``prompted``; None where no model is only asked.

    Raises:
        RecordError: it is damaged, or was written by another version.
    """
    file = folder / f"{outputs.PROMPTED[0]}.parquet"
    if not file.exists():
        return None
    remedy = "run `tasktransfer statistics` again"
    return read_frame(file, columns.PROMPTED, remedy)[0]


def read_statistic(folder: Path, table: str) -> pd.DataFrame:
    """Read one of ``columns.STATISTICS``.

    Raises:
        RecordError: it is absent, damaged, or was written by another version.
    """
    remedy = "run `tasktransfer statistics` again"
    return read_frame(folder / f"{table}.parquet", columns.STATISTICS[table], remedy)[0]
