"""Everything that was collected and computed of a study, as data frames.

What figures, printed tables, the report and notebooks start from::

    from tasktransfer.designs.transfer.collect.results import read_results

    results = read_results("results/demo/tables")
    results.statistics.cells[["model", "source", "target", "delta", "low", "high"]]
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tasktransfer.designs.transfer import outputs
from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.collect import Tables
from tasktransfer.designs.transfer.collect.store import read_tables
from tasktransfer.designs.transfer.tables import reference
from tasktransfer.tables.metadata import Metadata
from tasktransfer.tables.store import read_frame


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
    """

    tables: Tables
    statistics: Statistics
    metadata: Metadata
    lengths: pd.DataFrame | None
    reference: pd.DataFrame | None = None


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
        lengths=pd.read_parquet(lengths) if lengths.exists() else None,
        reference=reference.read(folder / Path(outputs.REFERENCE).name),
    )


def read_statistic(folder: Path, table: str) -> pd.DataFrame:
    """Read one of ``columns.STATISTICS``.

    Raises:
        RecordError: it is absent, damaged, or was written by another version.
    """
    remedy = "run `tasktransfer statistics` again"
    return read_frame(folder / f"{table}.parquet", columns.STATISTICS[table], remedy)[0]
