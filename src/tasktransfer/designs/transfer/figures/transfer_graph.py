"""Figure 1 of the paper: tasks as nodes, an arrow from each source to the targets it changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from tasktransfer.designs.transfer.figures.one_dataset import (
    count_seeds,
    select_single_source_cells,
)
from tasktransfer.designs.transfer.figures.task_types import LOOKS, get_task_type, list_types
from tasktransfer.designs.transfer.tables.names import (
    explain_short_names,
    fit_short_names,
    get_algorithm_label,
)
from tasktransfer.present.kit.paper import add_caption_notes, count_columns
from tasktransfer.present.kit.style import (
    DIVERGING,
    INK,
    LABEL_POINTS,
    add_legend_below,
    add_title,
    compute_colour_limit,
    fit_panels,
    fold_name,
    format_signed,
)
from tasktransfer.results.frames import Frames

ARROWS_PER_TASK = 3
"""Maximum number of arrows per task in one panel; more would be unreadable."""
_INCH = 1.15
"""Radius of the circle of nodes, inches."""
_PANEL = 2.2 * _INCH + 0.8
"""Width of a panel with the names next to it, inches."""
_LEAST_PANEL = 2.0
"""Width that a panel needs on paper, inches."""
_NODE = 11.0
"""Size of a node's marker, points."""
_THIN, _THICK = 0.5, 4.0
"""Widths of the weakest and the strongest arrow, points."""
_DASHED = (0, (2.5, 1.2))
_FADED = 0.25
"""Opacity of arrows without a significant effect."""


def plot_transfer_graph(frames: Frames, dataset: str) -> Figure | None:
    """Draw one graph of tasks per model, or return None if there is no single-source cell.

    An arrow's width and colour show the mean delta over the available algorithms. Negative transfer
    is dashed as well as red. Arrows are faded if no algorithm's delta is significant. Only the
    strongest arrows are drawn, so that they stay readable. All panels share one threshold, which
    the figure states.
    """
    cells = select_single_source_cells(frames, dataset)
    measured = cells[cells["delta"].notna()]
    if measured.empty:
        return None
    pairs = measured.groupby(["model", "source", "target"], sort=False)
    arrows = pairs.agg(delta=("delta", "mean"), significant=("significant", "any")).reset_index()
    tasks = frames.metadata.order_names("task", [*arrows["source"], *arrows["target"]])
    models = frames.metadata.order_names("model", arrows["model"])
    threshold = compute_arrow_threshold(arrows, ARROWS_PER_TASK * len(tasks))
    limit = max(compute_colour_limit(arrows["delta"].to_numpy(np.float64)), threshold)
    short = fit_short_names(tasks, frames.metadata.shorts)
    width = max(_PANEL * len(models), 5.4)
    figure = Figure(figsize=(width, _PANEL + 2), layout=ConstrainedLayoutEngine(w_pad=0.1))
    columns = count_columns(len(models), _LEAST_PANEL, len(models))
    panels = figure.subplots(-(-len(models) // columns), columns, squeeze=False)
    for spare in panels.flat[len(models) :]:
        spare.remove()
    for axes, model in zip(panels.flat, models, strict=False):
        of_model = arrows[arrows["model"] == model]
        drawn = of_model[of_model["delta"].abs() >= threshold]
        _draw_panel(axes, drawn, tasks, limit)
        _draw_nodes(axes, dataset, tasks, short)
        name = fold_name(model, _PANEL - 0.2, 10)
        axes.set_title(f"{name}\n{len(drawn)} of {len(of_model)} pairs drawn", fontsize=10)
    add_legend_below(
        figure,
        _build_legend_entries(dataset, tasks, arrows, threshold, limit),
        _format_note(threshold),
    )
    algorithms = frames.metadata.order_names("algorithm", measured["algorithm"])
    label = get_algorithm_label(algorithms[0])
    over = label if len(algorithms) == 1 else f"mean of {len(algorithms)} algorithms"
    what = f"{dataset}: score delta in points, {over}"
    add_title(figure, what, count_seeds(measured), frames.metadata)
    low, high = _compute_axis_limits(len(tasks))
    add_caption_notes(figure, explain_short_names(short))
    fit_panels(figure, panels, _INCH * 2.2, _INCH * (high - low), cells=True)
    return figure


def compute_arrow_threshold(arrows: pd.DataFrame, most: int) -> float:
    """Return the smallest absolute delta that is drawn, for at most ``most`` arrows per model.

    It is 0 if no panel has more arrows. Otherwise it is rounded up to two digits, so that the
    caption can state it exactly. If that would leave no arrow, because all are nearly equal, it is
    rounded down instead, and the panel has more arrows.
    """
    beyond = [
        sizes.iloc[most]
        for _, deltas in arrows.groupby("model")["delta"]
        if len(sizes := deltas.abs().sort_values(ascending=False)) > most
    ]
    if not beyond or max(beyond) == 0:
        return 0.0
    edge = float(max(beyond))
    step = 10.0 ** (np.floor(np.log10(edge)) - 1)
    above = float(f"{(np.floor(edge / step) + 1) * step:.3g}")
    if (arrows["delta"].abs() >= above).any():
        return above
    return float(f"{np.floor(edge / step) * step:.3g}")


def _place_nodes(count: int) -> list[tuple[float, float]]:
    """Place nodes on the unit circle, clockwise from the top (two nodes: left and right)."""
    first = np.pi if count == 2 else np.pi / 2
    angles = first - 2 * np.pi * np.arange(count) / count
    return [(float(np.cos(angle)), float(np.sin(angle))) for angle in angles]


def _compute_axis_limits(count: int) -> tuple[float, float]:
    """Return limits of the y axis with space for nodes and for names above and below."""
    heights = [y for _, y in _place_nodes(count)]
    return min(heights) - 0.3, max(heights) + 0.3


def _draw_panel(axes: Axes, arrows: pd.DataFrame, tasks: list[str], limit: float) -> None:
    """Draw the arrows of one panel, with strong arrows above weak ones."""
    position = dict(zip(tasks, _place_nodes(len(tasks)), strict=True))
    by_strength = arrows.sort_values("delta", key=lambda delta: delta.abs(), kind="stable")
    columns = ["source", "target", "delta", "significant"]
    for source, target, delta, significant in by_strength[columns].itertuples(index=False):
        colour, width, line = get_arrow_look(delta, limit)
        arrow = FancyArrowPatch(
            position[source],
            position[target],
            connectionstyle="arc3,rad=0.16",  # both directions of a pair bend apart
            arrowstyle="-|>,head_length=0.5,head_width=0.25",
            mutation_scale=5 + 2.2 * width,
            shrinkA=_NODE / 2 + 1,
            shrinkB=_NODE / 2 + 1,
            linewidth=width,
            linestyle=line,
            color=colour,
            alpha=1.0 if significant else _FADED,
            zorder=2,
        )
        arrow.set_in_layout(False)
        axes.add_patch(arrow)
    axes.set(xlim=(-1.1, 1.1), ylim=_compute_axis_limits(len(tasks)))
    axes.axis("off")


def get_arrow_look(delta: float, limit: float) -> tuple[Any, float, Any]:
    """Return the colour, width (points) and line style of an arrow for a delta.

    Colour and width grow up to ``limit``. The pale middle of the diverging colours is left out,
    because it would be invisible on paper.
    """
    strength = min(abs(delta) / limit, 1.0)
    colour = mpl.colormaps[DIVERGING](0.5 + np.sign(delta) * (0.22 + 0.26 * strength))
    return colour, _THIN + (_THICK - _THIN) * strength, _DASHED if delta < 0 else "-"


def _draw_nodes(axes: Axes, dataset: str, tasks: list[str], short: dict[str, str]) -> None:
    for task, (x, y) in zip(tasks, _place_nodes(len(tasks)), strict=True):
        look = LOOKS[get_task_type(dataset, task)]
        axes.plot(
            x, y, look.marker, ms=_NODE, mfc=look.colour, mec=INK, mew=0.8, zorder=3, clip_on=False
        )
        axes.annotate(
            short[task],
            (x, y),
            xytext=(_NODE * 0.95 * x, _NODE * 0.95 * y),
            textcoords="offset points",
            ha="center" if abs(x) < 0.3 else "left" if x > 0 else "right",
            va="center" if abs(y) < 0.3 else "bottom" if y > 0 else "top",
            fontsize=LABEL_POINTS,
        )


def _build_legend_entries(
    dataset: str, tasks: Sequence[str], arrows: pd.DataFrame, threshold: float, limit: float
) -> list[Line2D]:
    samples = [size for size in (limit, limit / 2) if size >= threshold]
    signs = [sign for sign in (1, -1) if (sign * arrows["delta"] >= max(threshold, 1e-9)).any()]
    entries = []
    for sign in signs:
        for size in samples:
            colour, width, line = get_arrow_look(sign * size, limit)
            label = f"{format_signed(sign * size)} points" + (" or beyond" if size == limit else "")
            entries.append(
                Line2D([], [], color=colour, linewidth=width, linestyle=line, label=label)
            )
    if not arrows["significant"].all():
        label = "faded: not significant (q > 0.05)"
        entries.append(Line2D([], [], color=INK, linewidth=2, alpha=_FADED, label=label))
    for name in list_types(dataset, tasks):
        look = LOOKS[name]
        entries.append(
            Line2D([], [], ls="", marker=look.marker, mfc=look.colour, mec=INK, ms=8, label=name)
        )
    return entries


def _format_note(threshold: float) -> str:
    shown = f"Arrows show effects of at least {threshold:g} points."
    return (
        f"{shown if threshold else 'Arrows show all pairs.'} Dashed arrows show negative transfer."
    )
