"""Implementation of the command ``statistics``: reads tables and writes statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pandas as pd
import pyarrow as pa

from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.collect import more_baseline_seeds
from tasktransfer.designs.transfer.collect.results import (
    Statistics,
    Tables,
    read_tables,
    write_frames,
)
from tasktransfer.designs.transfer.racing import Race
from tasktransfer.designs.transfer.statistics.agreement import agreement
from tasktransfer.designs.transfer.statistics.asymmetry import asymmetry
from tasktransfer.designs.transfer.statistics.by_dialogue import by_dialogue
from tasktransfer.designs.transfer.statistics.cells import cells
from tasktransfer.designs.transfer.statistics.collapsed import collapsed
from tasktransfer.designs.transfer.statistics.controls import (
    configured,
    control_cells,
    controls,
)
from tasktransfer.designs.transfer.statistics.overlap import (
    instances_in_test,
    overlap,
    overlap_effect,
)
from tasktransfer.designs.transfer.statistics.race import of_fresh_seeds, without_intervals
from tasktransfer.designs.transfer.statistics.summary import summary
from tasktransfer.designs.transfer.statistics.top1 import top1
from tasktransfer.designs.transfer.statistics.variance import variance
from tasktransfer.errors import RecordError
from tasktransfer.results.metadata import Metadata
from tasktransfer.results.store import read_frame

OVERLAP_DATA = "overlap_data.parquet"
"""Training dialogues that tasks share, from ``tasktransfer data stats``; may be absent."""

Progress = Callable[[str], None]


def compute(
    tables_folder: str | Path,
    results_root: str | Path,
    progress: Progress = lambda text: None,
    race: Race | None = None,
) -> Statistics:
    """Compute the statistics of collected tables and write them to the same folder.

    Cells whose records are unchanged are reused from an earlier ``cells.parquet``. Equal tables and
    predictions give equal bytes.

    Args:
        tables_folder: the folder of the collected tables, and of the statistics.
        results_root: the results folder that the paths in the tables are relative to.
        progress: function that receives one line before each step.
        race: the race of a study whose pairs raced; no interval uses seeds that selected pairs.

    Raises:
        RecordError: a table, record or predictions file is absent, damaged or changed since it was
            collected, or the shared dialogues were counted in other data.
    """
    folder, root = Path(tables_folder), Path(results_root)
    tables, metadata = read_tables(folder)
    training = _read_training(folder / OVERLAP_DATA, tables, metadata)
    previous = {name: _read_previous(folder, name) for name in _TAKEN_OVER}
    if race is not None:
        tables = replace(tables, deltas=of_fresh_seeds(tables.deltas, race))
    result = of_tables(tables, root, metadata, training, previous, progress)
    if race is not None:
        result = replace(result, cells=without_intervals(result.cells, race))
    progress("writing")
    write_frames(folder, {name: getattr(result, name) for name in columns.STATISTICS}, metadata)
    return result


def of_tables(
    tables: Tables,
    root: Path,
    metadata: Metadata,
    training: pd.DataFrame | None = None,
    previous: Mapping[str, pd.DataFrame | None] = MappingProxyType({}),
    progress: Progress = lambda text: None,
) -> Statistics:
    """Compute the statistics of tables in memory; arguments as in the functions that it calls.

    ``previous`` has an earlier call's frames by name.
    """
    order = metadata.order
    progress("cells: intervals and tests from the predictions")
    heatmap_cells = cells(tables, root, previous.get("cells"), more_baseline_seeds(metadata))
    deltas = tables.deltas
    progress("scores by dialogue")
    dialogues = by_dialogue(tables, root)
    progress("summary, variance and asymmetry")
    summaries = summary(deltas, order, dialogues)
    parts = variance(deltas, order)
    pairs = asymmetry(heatmap_cells, deltas, order)
    progress("agreement of the transfer matrices")
    agreements = agreement(deltas, order)
    progress("overlap of tasks")
    shared = overlap(instances_in_test(tables.runs, root), training, order)
    progress("controls and collapsed runs")
    over_controls = control_cells(tables, root, previous.get("control_cells"))
    return Statistics(
        cells=heatmap_cells,
        summary=summaries,
        variance=parts,
        asymmetry=pairs,
        agreement=agreements,
        overlap=shared,
        overlap_effect=overlap_effect(shared, deltas, order),
        control_cells=over_controls,
        controls=controls(over_controls, heatmap_cells, configured(tables)),
        top1=top1(deltas, tables.runs, dialogues, order),
        collapsed=collapsed(tables, root, previous.get("collapsed")),
    )


_TAKEN_OVER = ("cells", "control_cells", "collapsed")
"""Statistics whose rows are reused from an earlier call."""


def _read_previous(folder: Path, name: str) -> pd.DataFrame | None:
    """Read a table of an earlier call; None if there is no readable one.

    A damaged file or one of another version is not an error, because it is recomputed.
    """
    try:
        return read_frame(folder / f"{name}.parquet", columns.STATISTICS[name])[0]
    except RecordError:
        return None


def _read_training(path: Path, tables: Tables, metadata: Metadata) -> pd.DataFrame | None:
    """Read the counts of training dialogues that the study's tasks share; None if not counted."""
    if not path.exists():
        return None
    wanted = {"dataset", "source", "target", "shared", "of", "synthetic", "few_sample"}
    remedy = f"run `tasktransfer data stats --out {path.parent}` again, or delete the file"
    try:
        shared = pd.read_parquet(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RecordError(f"{path}: cannot be read: {error}; {remedy}") from error
    absent = sorted(wanted - set(shared.columns))
    if absent:
        raise RecordError(f"{path}: has no column {', '.join(absent)}; {remedy}")
    _check_same_data(path, shared, tables, metadata, remedy)
    studied = set(tables.runs["target"]) | set(tables.runs["sources"].explode().dropna())
    return shared[shared["source"].isin(studied) & shared["target"].isin(studied)]


def _check_same_data(
    path: Path, shared: pd.DataFrame, tables: Tables, metadata: Metadata, remedy: str
) -> None:
    """Raise RecordError if the dialogues were counted in other data than the runs used.

    Synthetic dialogues do not apply to runs on real ones, nor full data to few-sample runs.
    """
    of_runs = tables.runs.drop_duplicates("dataset").set_index("dataset")["few_sample"]
    for row in shared.drop_duplicates("dataset").itertuples(index=False):
        counted = {"synthetic": bool(row.synthetic), "few_sample": bool(row.few_sample)}
        trained = {
            "synthetic": metadata.is_synthetic(str(row.dataset)),
            "few_sample": bool(of_runs.get(row.dataset, row.few_sample)),
        }
        if counted != trained:
            raise RecordError(
                f"{path}: {row.dataset} was counted with {counted}, the runs have {trained}; "
                f"{remedy}"
            )
