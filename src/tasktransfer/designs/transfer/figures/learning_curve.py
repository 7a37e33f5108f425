"""Figure of learning curves: scores by number of training dialogues, one panel per task."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasktransfer.core.references import METHODS
from tasktransfer.designs.transfer.runs import NO_MODEL
from tasktransfer.present.kit.panels import (
    create_panels,
    fit_figure_to_panels,
    make_line_entry,
    set_panel_title,
)
from tasktransfer.present.kit.style import (
    Look,
    add_legend_below,
    add_title,
    get_series_look,
    set_log_x_axis,
)
from tasktransfer.results.frames import Frames

_WIDTH, _HEIGHT = 3.4, 2.6


def plot_learning_curve(frames: Frames) -> Figure | None:
    """Draw each method's scores and forecast, or return None if there is no learning curve."""
    rows = frames["learning_curve"]
    if rows.empty:
        return None
    panels = list(rows.groupby(["dataset", "target"], sort=False))
    methods = list(dict.fromkeys(zip(rows["method"], rows["model"], strict=True)))
    figure, axes = create_panels(len(panels), _WIDTH, _HEIGHT, shared="none")
    for panel, ((dataset, target), of_task) in zip(axes, panels, strict=True):
        set_panel_title(panel, f"{dataset}, {target}")
        for rank, (method, model) in enumerate(methods):
            curve = of_task[(of_task["method"] == method) & (of_task["model"] == model)]
            _draw_panel(panel, curve, get_series_look(rank), 1 + 0.02 * rank)
        set_log_x_axis(panel, of_task["dialogues"].tolist())
        panel.set_xlabel("training dialogues", fontsize=9)
        panel.set_ylabel("score", fontsize=9)
    entries = [
        make_line_entry(
            METHODS[method] if model == NO_MODEL else f"{METHODS[method]}, {model}",
            get_series_look(rank),
        )
        for rank, (method, model) in enumerate(methods)
    ]
    add_legend_below(figure, entries)
    add_title(figure, "Scores by number of training dialogues", None, frames.metadata)
    fit_figure_to_panels(figure, axes, _WIDTH, _HEIGHT)
    return figure


def _draw_panel(axes: Axes, curve: pd.DataFrame, look: Look, shift: float) -> None:
    """Draw the measured points with a solid line, and the forecast with a dotted line."""
    measured = curve[curve["fraction"] <= 1]
    for rows, style in ((measured, look.line), (curve[curve["fraction"] >= 1], ":")):
        x = rows["dialogues"].to_numpy() * shift
        axes.plot(x, rows["score"], color=look.colour, ls=style, lw=1.2)
    x, y = curve["dialogues"].to_numpy() * shift, curve["score"].to_numpy()
    errors = [y - curve["low"].to_numpy(), curve["high"].to_numpy() - y]
    colour = look.colour
    axes.errorbar(
        *(x, y, errors),
        fmt=look.marker,
        ms=4,
        elinewidth=0.8,
        capsize=2,
        color=colour,
        ecolor=colour,
    )
