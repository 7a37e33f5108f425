"""Sizes of a study's data: printed, and written as CSV and Parquet.

``table1``: samples per dataset, task and split (the paper's Table 1). ``lengths``: histogram of
utterance and dialogue lengths (data of Figure 6). ``overlap_data``: number of training dialogues
that each pair of tasks shares, for the statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import pandas as pd

from tasktransfer.data.cache import read_manifest
from tasktransfer.data.stats import (
    LENGTH_COLUMNS,
    OVERLAP_COLUMNS,
    StatsRow,
    compute_length_distributions,
    count_instances_by_split,
    count_training_overlap,
    tabulate_tasks,
)
from tasktransfer.files import remove_partial_files, replace_file
from tasktransfer.present.columns import format_table
from tasktransfer.present.printed import to_csv
from tasktransfer.results.store import format_synthetic_mark


def as_text(folders: Sequence[Path]) -> str:
    """Format Table 1 and a summary of lengths as text.

    Raises:
        DataError: a folder does not contain prepared instances.
    """
    generated = _read_synthetic_flags(folders)
    real = [dataset for dataset, synthetic in generated.items() if not synthetic]
    mark = format_synthetic_mark(real) if any(generated.values()) else ""
    samples = format_table(tabulate_tasks(count_instances_by_split(folders)))
    lengths = format_table(_summarise_lengths(compute_length_distributions(folders)))
    lines = [f"{mark}Samples per task and split", "", *samples, "", f"{mark}Lengths", "", *lengths]
    return "\n".join(lines) + "\n"


class DataReport(TypedDict):
    """Samples per task and split, and a summary of the lengths.

    ``synthetic``: dataset → whether its dialogues are generated.
    """

    synthetic: dict[str, bool]
    samples: list[StatsRow]
    lengths: list[dict[str, str | int]]


def as_json(folders: Sequence[Path]) -> DataReport:
    """Return the data report as JSON values."""
    return {
        "synthetic": _read_synthetic_flags(folders),
        "samples": list(count_instances_by_split(folders)),
        "lengths": _summarise_lengths(compute_length_distributions(folders)),
    }


def write_data_tables(folders: Sequence[Path], out: Path) -> list[Path]:
    """Write ``table1``, ``lengths`` and ``overlap_data`` as CSV and Parquet, each atomically.

    A column ``synthetic`` records whether the dialogues are generated.

    Raises:
        DataError: a folder does not contain prepared instances.
    """
    out.mkdir(parents=True, exist_ok=True)
    generated = _read_synthetic_flags(folders)
    written = []
    frames = {
        "table1": pd.DataFrame(count_instances_by_split(folders)),
        "lengths": pd.DataFrame(compute_length_distributions(folders), columns=LENGTH_COLUMNS),
        "overlap_data": pd.DataFrame(count_training_overlap(folders), columns=OVERLAP_COLUMNS),
    }
    for name, frame in frames.items():
        marked = frame.assign(synthetic=frame["dataset"].map(generated))
        for suffix in (".csv", ".parquet"):
            remove_partial_files(out, f"{name}{suffix}")
        with replace_file(out / f"{name}.csv") as part:
            part.write_text(to_csv(marked), encoding="utf-8")
        with replace_file(out / f"{name}.parquet") as part:
            marked.to_parquet(part, index=False)
        written += [out / f"{name}.csv", out / f"{name}.parquet"]
    return written


def _read_synthetic_flags(folders: Sequence[Path]) -> dict[str, bool]:
    """Map each dataset to whether its release is marked as synthetic."""
    manifests = map(read_manifest, folders)
    return {manifest.dataset: manifest.synthetic for manifest in manifests}


def _summarise_lengths(rows: Sequence[dict[str, str | int]]) -> list[dict[str, str | int]]:
    """Compute count, mean, median and maximum per dataset and unit."""
    frame = pd.DataFrame(rows, columns=LENGTH_COLUMNS)
    summary: list[dict[str, str | int]] = []
    for (dataset, unit), group in frame.groupby(["dataset", "unit"], sort=False):
        ordered = group.sort_values("length")
        count = int(ordered["count"].sum())
        middle = ordered.loc[ordered["count"].cumsum() >= count / 2, "length"].iloc[0]
        mean = float((ordered["length"] * ordered["count"]).sum() / count)
        summary.append(
            {
                "dataset": str(dataset),
                "unit": str(unit),
                "count": count,
                "mean": f"{mean:.1f}",
                "median": int(middle),
                "longest": int(ordered["length"].max()),
            }
        )
    return summary
