"""Figures 4, 5, 6 and 9 of the paper: score delta by properties of tasks, and lengths of dialogues.

The properties are the source/target sample ratio, the sample counts, and the type of the source.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tasktransfer.designs.transfer.figures.one_dataset import (
    LOOKS,
    count_seeds,
    get_task_type,
    get_training_sizes,
    list_types,
    select_single_source_cells,
)
from tasktransfer.designs.transfer.runs import get_algorithm_label
from tasktransfer.errors import format_quantity
from tasktransfer.present.kit.panels import create_panels, is_in_first_column, make_line_entry
from tasktransfer.present.kit.paper import add_caption_notes
from tasktransfer.present.kit.series import draw_best_fit, format_best_fit_note
from tasktransfer.present.kit.style import (
    ALGORITHM_COLOURS,
    INK,
    LABEL_POINTS,
    Look,
    add_legend_below,
    add_title,
    despine,
    fold_name,
    get_series_look,
    set_log_x_axis,
)
from tasktransfer.results.frames import Frames
from tasktransfer.stats.best_fit import compute_mean_interval

# --- figure 4: sample ratio ---


def compute_ratios(frames: Frames, dataset: str) -> pd.DataFrame:
    """Return the single-source cells with their sample ratio, source size / target size.

    Returns:
        columns of ``columns.CELLS``; ``ratio``: training instances of the source divided by those
        of the target; ``type``: the target's task type.
    """
    cells = select_single_source_cells(frames, dataset)
    sizes = get_training_sizes(frames, dataset)
    sized = cells[
        cells["delta"].notna() & cells["source"].isin(sizes) & cells["target"].isin(sizes)
    ]
    ratio = sized["source"].map(sizes).astype(float) / sized["target"].map(sizes).astype(float)
    types = sized["target"].map(lambda task: get_task_type(dataset, task))
    return sized.assign(ratio=ratio, type=types)


def plot_sample_ratio(frames: Frames, dataset: str) -> Figure | None:
    """Draw delta by sample ratio in one panel per model, or return None without known sizes.

    A point is the mean over seeds of one algorithm, source and target. Lines are least-squares fits
    of delta on the logarithm of the ratio per target type, with their 95 % interval over tasks. A
    type with fewer than three distinct ratios has no line.
    """
    cells = compute_ratios(frames, dataset)
    if cells.empty:
        return None
    models = frames.metadata.order_names("model", cells["model"])
    types = list_types(dataset, cells["target"])
    figure, panels = create_panels(len(models), 2.7, 2.9, columns=len(models))
    lines = False
    for axes, model in zip(panels, models, strict=True):
        lines |= _draw_ratios(axes, cells[cells["model"] == model], types)
        axes.set_title(fold_name(model, 2.6, 10), fontsize=10)
        if is_in_first_column(axes):
            axes.set_ylabel("Score delta, points", fontsize=LABEL_POINTS + 0.5)
        axes.set_xlabel("Training samples, source / target", fontsize=LABEL_POINTS)
    set_log_x_axis(panels[0], [float(cells["ratio"].min()), float(cells["ratio"].max())])
    add_legend_below(figure, _list_type_entries(types, lines), "Target task types")
    add_caption_notes(figure, [_format_ratio_note(frames, dataset, cells, lines)])
    what = f"{dataset}: score delta by target task type and sample ratio"
    add_title(figure, what, count_seeds(cells), frames.metadata)
    return figure


def _draw_ratios(axes: Axes, cells: pd.DataFrame, types: list[str]) -> bool:
    """Draw the points and trends of one model, and return whether there is a trend line."""
    despine(axes)
    lines = False
    for name in types:
        look = LOOKS[name]
        of_type = cells[cells["type"] == name]
        axes.scatter(
            of_type["ratio"],
            of_type["delta"],
            s=11,
            marker=look.marker,
            facecolor=look.colour,
            edgecolor="white",
            linewidth=0.3,
            alpha=0.55,
            zorder=2,
        )
        lines |= draw_best_fit(axes, of_type, "ratio", look)
    return lines


def _list_type_entries(types: list[str], lines: bool) -> list[Line2D]:
    return [
        make_line_entry(
            name,
            LOOKS[name],
            linestyle=LOOKS[name].line if lines else "",
            linewidth=2,
            markeredgecolor="white",
            markeredgewidth=0.3,
        )
        for name in types
    ]


def _format_ratio_note(frames: Frames, dataset: str, cells: pd.DataFrame, lines: bool) -> str:
    note = format_best_fit_note(lines)
    left_out = int(select_single_source_cells(frames, dataset)["delta"].notna().sum()) - len(cells)
    cells_text = format_quantity(left_out, "cell")
    return note + (
        f"; {cells_text} left out, because a task's size is unknown." if left_out else "."
    )


# --- figure 5: sample count ---


def plot_sample_count(frames: Frames, dataset: str) -> Figure | None:
    """Draw delta by number of samples, with sources on the left and targets on the right.

    A point is the mean delta over all cells whose source (or target) has that many training
    samples, with its 95 % interval. Tasks of equal size share one point. Lines are least-squares
    fits of the cells' deltas on the logarithm of the count, with their 95 % interval over tasks.
    A line needs at least three distinct counts. None if no cell has known sizes.
    """
    cells = select_single_source_cells(frames, dataset)
    cells = cells[cells["delta"].notna()]
    sizes = get_training_sizes(frames, dataset)
    sized = cells["source"].isin(sizes) | cells["target"].isin(sizes)
    if not sized.any():
        return None
    models = frames.metadata.order_names("model", cells["model"])
    figure = Figure(figsize=(7.0, 1.8 * len(models) + 1.9), layout="constrained")
    panels = figure.subplots(len(models), 2, squeeze=False, sharex="col", sharey=True)
    lines = False
    for column, role in enumerate(("source", "target")):
        counted = cells[cells[role].isin(sizes)]
        counted = counted.assign(count=counted[role].map(sizes).astype(float))
        for row, model in enumerate(models):
            of_model = counted[counted["model"] == model]
            lines |= _draw_counts(panels[row, column], of_model, get_series_look(row))
        if len(counted):
            set_log_x_axis(panels[0, column], [counted["count"].min(), counted["count"].max()])
        label = f"Training samples of the {role}"
        panels[-1, column].set_xlabel(label, fontsize=LABEL_POINTS + 0.5)
    for axes, model in zip(panels[:, 0], models, strict=True):
        name = fold_name(model, 1.6, LABEL_POINTS)
        axes.set_ylabel(f"{name}\nΔ score, points", fontsize=LABEL_POINTS)
    add_legend_below(figure, _list_count_entries(lines))
    add_caption_notes(figure, [f"{format_best_fit_note(lines)}."])
    what = f"{dataset}: score delta by sample count of source and target"
    add_title(figure, what, count_seeds(cells), frames.metadata)
    return figure


def _draw_counts(axes: Axes, cells: pd.DataFrame, look: Look) -> bool:
    """Draw the points and the trend of one panel, and return whether there is a trend line."""
    despine(axes)
    if cells.empty:
        return False
    line = draw_best_fit(axes, cells, "count", look)
    for count in np.unique(cells["count"].to_numpy(np.float64)):
        deltas = cells.loc[cells["count"] == count, "delta"]
        mean, lower, upper = compute_mean_interval(deltas.to_numpy(np.float64))
        axes.plot([count, count], [lower, upper], color=INK, lw=1, zorder=5)
        axes.plot(count, mean, look.marker, color=look.colour, ms=5.5, mec=INK, mew=0.8, zorder=6)
    return line


def _list_count_entries(lines: bool) -> list[Line2D | Patch]:
    means = Line2D([], [], color=INK, marker="o", mfc="none", ls="", label="mean, 95 % interval")
    if not lines:
        return [means]
    return [
        means,
        Line2D([], [], color=INK, lw=1.9, label="least squares over all cells"),
        Patch(color=INK, alpha=0.12, lw=0, label="its 95 % interval over tasks"),
    ]


# --- figure 9: type of the source ---


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
        _draw_types(axes, cells[cells["model"] == model], types, looks)
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


def _draw_types(axes: Axes, cells: pd.DataFrame, types: list[str], looks: dict[str, Look]) -> None:
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
            _draw_type(axes, column["delta"].to_numpy(np.float64), middle, slot, look)
    axes.margins(y=0.1)


def _draw_type(
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


# --- figure 6: lengths ---


_UNITS = {
    "utterance_words": ("Utterance length, words", "utterances"),
    "dialogue_turns": ("Dialogue length, turns", "dialogues"),
    "dialogue_words": ("Dialogue length, words", "dialogues"),
}
"""Axis label and counted noun by unit."""
_SHOWN = 0.99
"""Fraction of the utterances or dialogues that the axis covers."""
_MOST_BARS = 40


def plot_lengths(frames: Frames, dataset: str) -> Figure | None:
    """Draw one histogram of lengths per unit, or return None if the study lacks dialogues.

    Bars are percentages of all utterances or dialogues of the release. The axis ends where 99 % are
    shown; the panel states how many are longer, and the greatest length. If the dataset's releases
    have no turns, the figure says so.
    """
    if frames["lengths"].empty or dataset not in frames.metadata.order["dataset"]:
        return None
    counted = frames["lengths"][frames["lengths"]["dataset"] == dataset]
    units = [unit for unit in _UNITS if (counted["unit"] == unit).any()]
    if not units:
        return _draw_turnless_figure(frames, dataset)
    figure, panels = create_panels(len(units), 2.5, 2.5, shared="none")
    for axes, unit in zip(panels, units, strict=True):
        _draw_lengths(axes, counted[counted["unit"] == unit], *_UNITS[unit])
    add_legend_below(
        figure,
        [
            Line2D([], [], color=INK, ls="-", lw=1.4, label="median"),
            Line2D([], [], color=INK, ls=":", lw=1.8, label="mean"),
        ],
    )
    what = f"{dataset}: lengths of utterances and dialogues"
    add_title(figure, what, None, frames.metadata)
    return figure


def _draw_turnless_figure(frames: Frames, dataset: str) -> Figure:
    figure = Figure(figsize=(5.4, 1.6), layout="constrained")
    figure.text(0.5, 0.4, f"Releases of {dataset} do not mark turns.", ha="center", fontsize=9)
    add_title(figure, f"{dataset}: lengths of utterances and dialogues", None, frames.metadata)
    return figure


def _draw_lengths(axes: Axes, histogram: pd.DataFrame, label: str, noun: str) -> None:
    ordered = histogram.sort_values("length")
    length = ordered["length"].to_numpy(np.int64)
    count = ordered["count"].to_numpy(np.int64)
    total = int(count.sum())
    reached = np.cumsum(count) / total
    last = int(length[np.searchsorted(reached, _SHOWN)])
    step = max(1, -(-(last - int(length[0]) + 1) // _MOST_BARS))
    edges = np.arange(length[0], last + step + 1, step)
    shares, _ = np.histogram(length, edges, weights=100 * count / total)
    axes.bar(
        edges[:-1] - 0.5, shares, step, align="edge", color=ALGORITHM_COLOURS[0], ec="white", lw=0.4
    )
    median = int(length[np.searchsorted(reached, 0.5)])
    mean = float((length * count).sum() / total)
    axes.axvline(median, color=INK, ls="-", lw=1.4)
    axes.axvline(mean, color=INK, ls=":", lw=1.8)
    axes.set_title(
        f"{total:,} {noun}\nmedian {median:,}, mean {mean:,.1f}\n"
        f"{_describe_longest_items(length, count, edges)}",
        fontsize=8,
    )
    axes.set_xlabel(label, fontsize=LABEL_POINTS + 0.5)
    axes.set_ylabel(f"% of {noun}", fontsize=LABEL_POINTS + 0.5)
    despine(axes, zero=None)
    axes.locator_params(axis="x", nbins=6, integer=True)


def _describe_longest_items(length: Any, count: Any, edges: Any) -> str:
    """Describe how many items are longer than the axis, and the maximum length."""
    longer = int(count[length >= edges[-1]].sum())
    if not longer:
        return f"longest {int(length[-1]):,}"
    return f"{longer:,} longer than {int(edges[-1]) - 1:,}, up to {int(length[-1]):,}"
