"""Figure 5 of the paper: score delta by the sample count of the source and of the target."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tasktransfer.designs.transfer.figures.one_dataset import (
    count_seeds,
    get_training_sizes,
    select_single_source_cells,
)
from tasktransfer.present.kit.paper import add_caption_notes
from tasktransfer.present.kit.style import (
    INK,
    LABEL_POINTS,
    Look,
    add_legend_below,
    add_title,
    despine,
    draw_best_fit,
    fold_name,
    format_best_fit_note,
    get_series_look,
    set_log_x_axis,
)
from tasktransfer.results.frames import Frames
from tasktransfer.stats.best_fit import compute_mean_interval


def plot_sample_count(frames: Frames, dataset: str) -> Figure | None:
    """Draw delta by number of samples, with sources on the left and targets on the right.

    A point is the mean delta over all cells whose source (or target) has that many training
    samples, with its 95 % interval. Tasks of equal size share one point. Lines are least-squares
    fits of the cells' deltas on the logarithm of the count, with their 95 % interval over tasks.
    There is no line with fewer than three distinct counts. None if no cell has known sizes.
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
            lines |= _draw_panel(panels[row, column], of_model, get_series_look(row))
        if len(counted):
            set_log_x_axis(panels[0, column], [counted["count"].min(), counted["count"].max()])
        label = f"Training samples of the {role}"
        panels[-1, column].set_xlabel(label, fontsize=LABEL_POINTS + 0.5)
    for axes, model in zip(panels[:, 0], models, strict=True):
        name = fold_name(model, 1.6, LABEL_POINTS)
        axes.set_ylabel(f"{name}\nΔ score, points", fontsize=LABEL_POINTS)
    add_legend_below(figure, _build_legend_entries(lines))
    add_caption_notes(figure, [f"{format_best_fit_note(lines)}."])
    what = f"{dataset}: score delta by sample count of source and target"
    add_title(figure, what, count_seeds(cells), frames.metadata)
    return figure


def _draw_panel(axes: Axes, cells: pd.DataFrame, look: Look) -> bool:
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


def _build_legend_entries(lines: bool) -> list[Line2D | Patch]:
    means = Line2D([], [], color=INK, marker="o", mfc="none", ls="", label="mean, 95 % interval")
    if not lines:
        return [means]
    return [
        means,
        Line2D([], [], color=INK, lw=1.9, label="least squares over all cells"),
        Patch(color=INK, alpha=0.12, lw=0, label="its 95 % interval over tasks"),
    ]
