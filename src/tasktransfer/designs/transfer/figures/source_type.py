"""Figure 9 of the paper: score delta by the type of the source task."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tasktransfer.core.messages import format_quantity
from tasktransfer.designs.transfer.figures.one_dataset import (
    count_seeds,
    select_single_source_cells,
)
from tasktransfer.designs.transfer.figures.task_types import get_task_type, list_types
from tasktransfer.designs.transfer.tables.names import get_algorithm_label
from tasktransfer.present.kit.style import (
    INK,
    LABEL_POINTS,
    Look,
    add_legend_below,
    add_title,
    despine,
    fold_name,
    get_series_look,
)
from tasktransfer.results.frames import Frames
from tasktransfer.stats.best_fit import compute_mean_interval

_GROUP = 0.84
"""Fraction of the axis unit that the algorithms of one type take."""
_GOLDEN = 0.6180339887


def plot_source_type(frames: Frames, dataset: str) -> Figure | None:
    """Draw delta by type of source in one panel per model, or return None without a cell.

    Small points are cells (one source and target, mean over seeds), spread sideways so that they
    do not overlap. Large marks are their means with 95 % intervals.
    """
    cells = select_single_source_cells(frames, dataset)
    cells = cells[cells["delta"].notna()]
    if cells.empty:
        return None
    cells = cells.assign(type=cells["source"].map(lambda task: get_task_type(dataset, task)))
    models = frames.metadata.order_names("model", cells["model"])
    algorithms = frames.metadata.order_names("algorithm", cells["algorithm"])
    types = list_types(dataset, cells["source"])
    looks = {name: get_series_look(rank) for rank, name in enumerate(algorithms)}
    figure = Figure(figsize=(7.0, 1.9 * len(models) + 1.9), layout="constrained")
    panels = figure.subplots(len(models), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
    for axes, model in zip(panels, models, strict=True):
        _draw_panel(axes, cells[cells["model"] == model], types, looks)
        name = fold_name(model, 1.6, LABEL_POINTS)
        axes.set_ylabel(f"{name}\nΔ score, points", fontsize=LABEL_POINTS)
    sources = cells.drop_duplicates("source")["type"].value_counts()
    labels = [
        f"{name.replace(' ', chr(10))}\n({format_quantity(int(sources[name]), 'task')})"
        for name in types
    ]
    panels[-1].set_xticks(range(len(types)), labels, fontsize=LABEL_POINTS)
    panels[-1].set_xlim(-0.5, len(types) - 0.5)
    entries = [
        Line2D([], [], color=look.colour, marker=look.marker, ls="-", lw=1.6, ms=6, mec=INK,
               label=get_algorithm_label(name))
        for name, look in looks.items()
    ]  # fmt: skip
    add_legend_below(figure, entries)
    what = f"{dataset}: score delta by source task type"
    add_title(figure, what, count_seeds(cells), frames.metadata)
    return figure


def _draw_panel(axes: Axes, cells: pd.DataFrame, types: list[str], looks: dict[str, Look]) -> None:
    despine(axes)
    for index in range(len(types) - 1):
        axes.axvline(index + 0.5, color="#d0d0d0", linewidth=0.6, zorder=0)
    slot = _GROUP / len(looks)
    for index, name in enumerate(types):
        for rank, (algorithm, look) in enumerate(looks.items()):
            column = cells[(cells["type"] == name) & (cells["algorithm"] == algorithm)]
            if column.empty:
                continue
            middle = index - _GROUP / 2 + (rank + 0.5) * slot
            _draw_column(axes, column["delta"].to_numpy(np.float64), middle, slot, look)
    axes.margins(y=0.1)


def _draw_column(
    axes: Axes, deltas: np.ndarray[tuple[int], np.dtype[np.float64]], middle: float, slot: float,
    look: Look,
) -> None:  # fmt: skip
    sideways = (np.arange(len(deltas)) * _GOLDEN) % 1  # even, and deterministic
    sideways -= np.mean(sideways)
    axes.scatter(
        middle + 0.7 * slot * sideways, deltas, s=7, marker=look.marker, color=look.colour,
        alpha=0.35, linewidth=0, zorder=2,
    )  # fmt: skip
    mean, low, high = compute_mean_interval(deltas)
    axes.plot([middle, middle], [low, high], color=INK, lw=1.6, zorder=3)
    axes.plot(middle, mean, look.marker, color=look.colour, mec=INK, mew=0.9, ms=6.5, zorder=4)
