"""Selection of the results that one figure reads: its dataset, and the frames it requests."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

import pandas as pd

from tasktransfer.datasets import as_seen_from
from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.results import Results, Statistics, Tables
from tasktransfer.results.metadata import order_names

LENGTHS, ASKED, LEARNED = "lengths", "prompted", "references"
_Frames = TypeVar("_Frames", Tables, Statistics)
FRAMES = (*columns.TABLES, *columns.STATISTICS, LENGTHS, ASKED, LEARNED)
"""Every frame of ``Results``."""


def select_dataset(results: Results, dataset: str, frames: Collection[str] = FRAMES) -> Results:
    """Return the results with the rows of one dataset only; frames that are not named are empty.

    ``metadata`` keeps only the dataset's tasks and drops the whole study's records and config, so
    that equal results mean an equal figure.
    """
    metadata = results.metadata
    tasks = _list_tasks(results, dataset)
    order = dict(metadata.order)
    order["dataset"] = [dataset]
    order["task"] = order_names(tasks, [task for task in order.get("task", ()) if task in tasks])
    tables = _reduce_frames(results.tables, dataset, frames)
    if "sizes" in frames:
        tables = replace(tables, sizes=_select_sizes(results, dataset))
    return Results(
        tables=tables,
        statistics=_reduce_frames(results.statistics, dataset, frames),
        metadata=replace(
            metadata,
            synthetic=metadata.is_synthetic(dataset),
            real=[],
            records=0,
            config_digest="",
            order=order,
            shorts={task: name for task, name in metadata.shorts.items() if task in tasks},
        ),
        lengths=_filter_optional_frame(results.lengths, dataset, LENGTHS in frames),
        prompted=_filter_optional_frame(results.prompted, dataset, ASKED in frames),
        references=_filter_optional_frame(results.references, dataset, LEARNED in frames),
    )


def list_datasets(results: Results) -> list[str]:
    """Return every dataset with finished or missing runs, in the study's order."""
    names = [*results.tables.runs["dataset"], *results.tables.missing["dataset"]]
    return results.metadata.order_names("dataset", names)


def select_single_source_cells(results: Results, dataset: str) -> pd.DataFrame:
    """Return the single-source cells of one dataset: columns of ``columns.CELLS``."""
    cells = results.statistics.cells
    return cells[(cells["dataset"] == dataset) & (cells["n_sources"] == 1)]


def count_seeds(cells: pd.DataFrame) -> int:
    """Return the number of distinct seeds in cells."""
    return len({seed for seeds in cells["seeds"] for seed in seeds})


def train_sizes(results: Results, dataset: str) -> dict[str, int]:
    """Return the number of training instances by task, as the dataset's runs name it.

    Tasks whose size the records do not contain are left out.
    """
    rows = results.tables.sizes[results.tables.sizes["train"] > 0]
    named = (
        as_seen_from(dataset, task) for task in zip(rows["dataset"], rows["task"], strict=True)
    )
    return dict(zip(named, rows["train"].astype(int), strict=True))


def _list_tasks(results: Results, dataset: str) -> list[str]:
    """Return every target and source of finished and missing runs and of cells.

    Cells are included because a figure may read cells alone.
    """
    tables = results.tables
    tasks: dict[str, None] = {}
    for frame in (tables.runs, tables.missing, results.statistics.cells):
        rows = frame[frame["dataset"] == dataset]
        tasks |= dict.fromkeys(rows["target"])
        tasks |= dict.fromkeys(
            task for source in rows["source"].unique() for task in _split_source(source)
        )
    return list(tasks)


def _select_sizes(results: Results, dataset: str) -> pd.DataFrame:
    """Return the sizes of a dataset's tasks and of its sources, which may be in other datasets."""
    cells, sizes = results.statistics.cells, results.tables.sizes
    sources = set(cells.loc[cells["dataset"] == dataset, "source"])
    homes = zip(sizes["dataset"], sizes["task"], strict=True)
    kept = [home[0] == dataset or as_seen_from(dataset, home) in sources for home in homes]
    return sizes[pd.Series(kept, dtype=bool, index=sizes.index)].reset_index(drop=True)


def _split_source(source: str) -> list[str]:
    return source.split("+") if source else []


def _reduce_frames(group: _Frames, dataset: str, frames: Collection[str]) -> _Frames:
    """Return the frames with the rows of one dataset; frames that are not requested are empty."""
    kept: dict[str, Any] = {}
    for field in fields(cast(Any, group)):
        frame: pd.DataFrame = getattr(group, field.name)
        wanted = field.name in frames and "dataset" in frame
        rows = frame["dataset"] == dataset if wanted else slice(0)
        kept[field.name] = frame[rows].reset_index(drop=True)
    return cast(_Frames, replace(cast(Any, group), **kept))


def _filter_optional_frame(
    frame: pd.DataFrame | None, dataset: str, wanted: bool
) -> pd.DataFrame | None:
    if frame is None or not wanted:
        return None
    return frame[frame["dataset"] == dataset].reset_index(drop=True)
