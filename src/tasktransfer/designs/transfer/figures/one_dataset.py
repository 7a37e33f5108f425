"""Selection of the rows of one dataset, which its figures read, and the types of its tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pandas as pd

from tasktransfer.core.references import TRANSFER
from tasktransfer.datasets import find_task, resolve_task, shorten_task_name
from tasktransfer.present.kit.style import Look
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import order_names
from tasktransfer.tasks.card import TaskKind


def select_dataset(frames: Frames, dataset: str) -> Frames:
    """Return the frames with only the rows of one dataset.

    Frames without a dataset column are empty.

    ``metadata`` keeps only the dataset's tasks and drops the whole study's records and config, so
    that a figure changes only if its frames change.
    """
    metadata = frames.metadata
    tasks = _list_tasks(frames, dataset)
    order = dict(metadata.order)
    order["dataset"] = [dataset]
    order["task"] = order_names(tasks, [task for task in order.get("task", ()) if task in tasks])
    selected = {name: _select_rows(frames[name], dataset) for name in frames}
    if "sizes" in frames:
        selected["sizes"] = _select_sizes(frames, dataset)
    return frames.replace(
        selected,
        replace(
            metadata,
            synthetic=metadata.is_synthetic(dataset),
            real=[],
            records=0,
            config_digest="",
            order=order,
            shorts={task: name for task, name in metadata.shorts.items() if task in tasks},
        ),
    )


def _select_rows(frame: pd.DataFrame, dataset: str) -> pd.DataFrame:
    rows = frame["dataset"] == dataset if "dataset" in frame else slice(0)
    return frame[rows].reset_index(drop=True)


def list_datasets(frames: Frames) -> list[str]:
    """Return the datasets with finished or missing runs, in the study's order."""
    names = [*frames["transfer_runs"]["dataset"], *frames["missing_runs"]["dataset"]]
    return frames.metadata.order_names("dataset", names)


def select_single_source_cells(frames: Frames, dataset: str) -> pd.DataFrame:
    """Return the single-source cells of one dataset, with the columns ``columns.CELLS``."""
    cells = frames["cells"]
    return cells[(cells["dataset"] == dataset) & (cells["n_sources"] == 1)]


def compute_pair_means(cells: pd.DataFrame) -> pd.DataFrame:
    """Compute the mean delta of each pair of tasks over models and algorithms.

    Args:
        cells: single-source rows of one dataset, columns of ``columns.CELLS``.

    Returns:
        source, target; ``delta``: mean over the available models and algorithms, points;
        ``n``: number of these combinations; ``improve``: number of them with a delta above zero.
    """
    measured = cells[cells["delta"].notna()]
    return (
        measured.assign(better=measured["delta"] > 0)
        .groupby(["source", "target"], sort=False)
        .agg(delta=("delta", "mean"), n=("delta", "size"), improve=("better", "sum"))
        .reset_index()
    )


def count_seeds(cells: pd.DataFrame) -> int:
    """Return the number of different seeds in cells."""
    return len({seed for seeds in cells["seeds"] for seed in seeds})


def get_training_sizes(frames: Frames, dataset: str) -> dict[str, int]:
    """Map each task to its number of training instances, by the task names of the dataset's runs.

    Tasks whose size the records do not contain are left out.
    """
    rows = frames["sizes"][frames["sizes"]["train"] > 0]
    named = (
        shorten_task_name(dataset, task) for task in zip(rows["dataset"], rows["task"], strict=True)
    )
    return dict(zip(named, rows["train"].astype(int), strict=True))


def _list_tasks(frames: Frames, dataset: str) -> list[str]:
    """Return the targets and sources of finished runs, missing runs, cells and methods.

    Cells and methods are included because a figure may read these frames alone.
    """
    tasks: dict[str, None] = {}
    for name in ("transfer_runs", "missing_runs", "cells", "training_curves", "methods"):
        if name not in frames:
            continue
        frame = frames[name]
        rows = frame[frame["dataset"] == dataset]
        tasks |= dict.fromkeys(rows["target"])
        sources = _list_transfer_sources(rows) if name == "methods" else rows["source"].unique()
        tasks |= dict.fromkeys(task for source in sources for task in _split_source(source))
    return list(tasks)


def _list_transfer_sources(methods: pd.DataFrame) -> list[str]:
    """Return the sources in the variants of transfers, such as ``multitask:A+B``."""
    variants = methods.loc[methods["method"] == TRANSFER, "variant"]
    return [str(variant).rpartition(":")[2] for variant in variants]


def _select_sizes(frames: Frames, dataset: str) -> pd.DataFrame:
    """Return the sizes of a dataset's tasks and of their sources, also from other datasets."""
    cells, sizes = frames["cells"], frames["sizes"]
    sources = set(cells.loc[cells["dataset"] == dataset, "source"])
    tasks = zip(sizes["dataset"], sizes["task"], strict=True)
    is_used = [task[0] == dataset or shorten_task_name(dataset, task) in sources for task in tasks]
    return sizes[pd.Series(is_used, dtype=bool, index=sizes.index)].reset_index(drop=True)


def _split_source(source: str) -> list[str]:
    return source.split("+") if source else []


# --- types of tasks ---


UNKNOWN = "other"
"""Type of a task without a card, for example from your own dataset."""

_TYPE_BY_KIND: dict[TaskKind, str] = {
    "utterance_classification": "utterance classification",
    "dialogue_classification": "dialogue classification",
    "multi_label": "dialogue classification",
    "multi_output": "dialogue classification",
    "span": "span extraction",
    "multiple_choice": "multiple choice",
}
_TYPE_BY_TASK = {("Friends", "reading_comprehension"): "multiple choice"}
"""The release answers it with a span; the paper's Table 1 counts it as multiple choice."""

LOOKS: dict[str, Look] = {
    "utterance classification": Look("#e69f00", "o", "-"),
    "dialogue classification": Look("#009e73", "s", "--"),
    "span extraction": Look("#cc79a7", "^", "-."),
    "multiple choice": Look("#1a1a1a", "D", ":"),
    UNKNOWN: Look("#666666", "X", "-"),
}
"""Colours of Okabe and Ito's palette that are far from the blue and red of transfer."""


def get_task_type(dataset: str, task: str) -> str:
    """Return the paper's name for the type of a task, or ``other`` if the task has no card."""
    card = find_task(dataset, task)
    if card is None:
        return UNKNOWN
    return _TYPE_BY_TASK.get(resolve_task(dataset, task), _TYPE_BY_KIND.get(card.kind, UNKNOWN))


def list_types(dataset: str, tasks: Iterable[str]) -> list[str]:
    """Return the distinct types of the tasks, in the paper's order."""
    types = {get_task_type(dataset, task) for task in tasks}
    return [name for name in LOOKS if name in types]
