"""Figure 4 of the paper: score delta by target task type against the source/target ratio."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tasktransfer.core.messages import format_quantity
from tasktransfer.designs.transfer.figures.one_dataset import (
    count_seeds,
    get_training_sizes,
    select_single_source_cells,
)
from tasktransfer.designs.transfer.figures.task_types import LOOKS, get_task_type, list_types
from tasktransfer.present.kit.panels import create_panels, is_in_first_column, make_line_entry
from tasktransfer.present.kit.paper import add_caption_notes
from tasktransfer.present.kit.style import (
    LABEL_POINTS,
    add_legend_below,
    add_title,
    despine,
    draw_best_fit,
    fold_name,
    format_best_fit_note,
    set_log_x_axis,
)
from tasktransfer.results.frames import Frames


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
        lines |= _draw_panel(axes, cells[cells["model"] == model], types)
        axes.set_title(fold_name(model, 2.6, 10), fontsize=10)
        if is_in_first_column(axes):
            axes.set_ylabel("Score delta, points", fontsize=LABEL_POINTS + 0.5)
        axes.set_xlabel("Training samples, source / target", fontsize=LABEL_POINTS)
    set_log_x_axis(panels[0], [float(cells["ratio"].min()), float(cells["ratio"].max())])
    add_legend_below(figure, _build_legend_entries(types, lines), "Target task types")
    add_caption_notes(figure, [_format_note(frames, dataset, cells, lines)])
    what = f"{dataset}: score delta by target task type and sample ratio"
    add_title(figure, what, count_seeds(cells), frames.metadata)
    return figure


def _draw_panel(axes: Axes, cells: pd.DataFrame, types: list[str]) -> bool:
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


def _build_legend_entries(types: list[str], lines: bool) -> list[Line2D]:
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


def _format_note(frames: Frames, dataset: str, cells: pd.DataFrame, lines: bool) -> str:
    note = format_best_fit_note(lines)
    left_out = int(select_single_source_cells(frames, dataset)["delta"].notna().sum()) - len(cells)
    cells_text = format_quantity(left_out, "cell")
    return note + (
        f"; {cells_text} left out, because a task's size is unknown." if left_out else "."
    )
