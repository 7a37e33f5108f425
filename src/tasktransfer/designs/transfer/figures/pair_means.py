"""Figures 1, 7 and 8 of the paper: mean delta of each pair of tasks, as a graph and as a matrix.

The matrix shows means over all models and algorithms. The graph has one panel per model: tasks are
nodes, and an arrow leads from each source to the targets that it changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch

from tasktransfer.designs.transfer.figures.one_dataset import (
    LOOKS,
    compute_pair_means,
    count_seeds,
    get_task_type,
    list_types,
    select_single_source_cells,
)
from tasktransfer.designs.transfer.report.learned import list_unlearned_targets
from tasktransfer.designs.transfer.runs import (
    explain_short_names,
    fit_short_names,
    get_algorithm_label,
)
from tasktransfer.errors import format_quantity
from tasktransfer.present.kit import matrix as cell_grid
from tasktransfer.present.kit.paper import add_caption_notes, count_columns
from tasktransfer.present.kit.style import (
    DIVERGING,
    INK,
    LABEL_POINTS,
    add_legend_below,
    add_title,
    choose_text_colour,
    compute_colour_limit,
    find_exceeded_ends,
    fit_panels,
    fold_name,
    format_signed,
)
from tasktransfer.results.frames import Frames

# --- figures 7 and 8: matrix ---


_CELL = 0.52
"""Width and height of a cell, inches."""
_GAP = 0.25
"""Gap between the matrix and its margins, cells."""


def plot_aggregate_transfer(frames: Frames, dataset: str) -> Figure | None:
    """Draw a dataset's mean deltas, source × target, or return None if there are none.

    Each cell shows the mean over models and algorithms and, below it, the number of combinations in
    which the target improved. The last column has each source's mean over its targets, the last row
    each target's mean over its sources, and the corner the mean of all.
    """
    cells = select_single_source_cells(frames, dataset)
    pairs = compute_pair_means(cells)
    if pairs.empty:
        return None
    missing = frames["missing_runs"]
    absent = missing[(missing["dataset"] == dataset) & (missing["n_sources"] == 1)]
    names = [*pairs["source"], *pairs["target"], *absent["source"], *absent["target"]]
    tasks = frames.metadata.order_names("task", names)
    short = fit_short_names(tasks, frames.metadata.shorts)
    limit = compute_colour_limit(pairs["delta"].to_numpy(np.float64))
    side = max(_CELL * (len(tasks) + 1 + _GAP), 3.6)
    figure = Figure(figsize=(side + 2.0, side + 1.9), layout="constrained")
    axes = figure.subplots()
    expected = int(pairs["n"].max())
    scale = min(1.5, side / (len(tasks) + 1 + _GAP) / _CELL)
    far = _draw_means(axes, pairs, tasks, limit, expected, scale)
    lost, unplanned = _list_empty_cells(pairs, absent, tasks)
    cell_grid.hatch_missing_cells(axes, lost)
    cell_grid.hatch_unplanned_cells(axes, unplanned)
    _label_axes(axes, [short[task] for task in tasks])
    bar = figure.colorbar(
        ScalarMappable(TwoSlopeNorm(0, -limit, limit), mpl.colormaps[DIVERGING]),
        ax=axes,
        extend=find_exceeded_ends(pairs["delta"].to_numpy(np.float64), limit),
        shrink=0.7,
        aspect=25,
    )
    bar.set_label("Mean score delta, points")
    entries: list[Artist] = [
        *cell_grid.make_hatch_entries(missing=bool(lost), not_planned=bool(unplanned))
    ]
    if far:
        entries.append(cell_grid.make_clipped_entry(limit, " points"))
    if (pairs["n"] < expected).any():
        entries.append(
            Patch(facecolor="none", edgecolor="none", label="* some combinations missing")
        )
    add_legend_below(figure, entries)
    models, algorithms = cells["model"].nunique(), cells["algorithm"].nunique()
    what = (
        f"{dataset}: mean score delta over {format_quantity(models, 'model')} "
        f"and {format_quantity(algorithms, 'algorithm')}"
    )
    add_title(figure, what, count_seeds(cells), frames.metadata)
    add_caption_notes(figure, explain_short_names(short))
    fit_panels(figure, np.array([[axes]]), side, side, cells=True)
    return figure


def _draw_means(
    axes: Axes,
    pairs: pd.DataFrame,
    tasks: list[str],
    limit: float,
    expected: int,
    scale: float,
) -> list[cell_grid.Corner]:
    """Draw the cells that have a value, and return those with values outside the colour scale."""
    position = {task: float(index) for index, task in enumerate(tasks)}
    margin = len(tasks) + _GAP
    shown: dict[cell_grid.Corner, tuple[float, str]] = {}
    for row in pairs.itertuples():
        mark = "" if row.n == expected else "*"
        corner = position[str(row.target)], position[str(row.source)]
        shown[corner] = float(row.delta), f"{row.improve}/{row.n}{mark}"  # type: ignore[arg-type]
    for source, delta in pairs.groupby("source")["delta"].mean().items():
        shown[margin, position[str(source)]] = float(delta), ""
    for target, delta in pairs.groupby("target")["delta"].mean().items():
        shown[position[str(target)], margin] = float(delta), ""
    shown[margin, margin] = float(pairs["delta"].mean()), ""
    norm, colours = TwoSlopeNorm(0, -limit, limit), mpl.colormaps[DIVERGING]
    fills = [colours(norm(delta)) for delta, _ in shown.values()]
    cell_grid.fill_cells(axes, list(shown), fills)
    for (corner, (delta, share)), colour in zip(shown.items(), fills, strict=True):
        ink = choose_text_colour(colour)
        font: cell_grid.FontStyle = {} if share else {"weight": "bold"}
        cell_grid.write_cell_text(
            axes, corner, format_signed(delta), 8 * scale, ink, down=0.36 if share else 0.5, **font
        )
        if share:
            cell_grid.write_cell_text(axes, corner, share, 6 * scale, ink, down=0.74)
    far = {
        corner: choose_text_colour(colour)
        for (corner, (delta, _)), colour in zip(shown.items(), fills, strict=True)
        if abs(delta) > limit
    }
    cell_grid.mark_clipped_cells(axes, list(far), list(far.values()))
    return list(far)


def _list_empty_cells(
    pairs: pd.DataFrame, absent: pd.DataFrame, tasks: list[str]
) -> tuple[list[cell_grid.Corner], list[cell_grid.Corner]]:
    """Return the off-diagonal cells without a number, separated into planned and unplanned ones."""
    there = {*zip(pairs["source"], pairs["target"], strict=True)}
    planned = {*zip(absent["source"], absent["target"], strict=True)}
    missing: list[cell_grid.Corner] = []
    not_planned: list[cell_grid.Corner] = []
    for (row, source), (column, target) in itertools.permutations(enumerate(tasks), 2):
        if (source, target) not in there:
            kind = missing if (source, target) in planned else not_planned
            kind.append((float(column), float(row)))
    return missing, not_planned


def _label_axes(axes: Axes, names: list[str]) -> None:
    count = len(names)
    far = count + 1 + _GAP
    places = [*(np.arange(count) + 0.5), count + _GAP + 0.5]
    axes.set(xlim=(0, far), ylim=(far, 0))
    axes.set_xticks(places, [*names, "mean"], rotation=90)
    axes.set_yticks(places, [*names, "mean"])
    axes.tick_params(length=0, labelsize=8)
    axes.set_xlabel("target", fontsize=10)
    axes.set_ylabel("source", fontsize=10)
    axes.spines[:].set_visible(False)


# --- figure 1: graph ---


ARROWS_PER_TASK = 3
"""Maximum number of arrows per task in one panel; more would be unreadable."""
_INCH = 1.15
"""Radius of the circle of nodes, inches."""
_GRAPH_PANEL = 2.2 * _INCH + 0.8
"""Width of a panel with the names next to it, inches."""
_LEAST_PANEL = 2.0
"""Width that a panel needs on paper, inches."""
_NODE = 11.0
"""Size of a node's marker, points."""
_RIM = 2.0
"""Width of a hollow node's edge, points."""
_THIN, _THICK = 0.5, 4.0
"""Widths of the weakest and the strongest arrow, points."""
_DASHED = (0, (2.5, 1.2))
_FADED = 0.25
"""Opacity of arrows without a significant effect."""
UNLEARNED_LABEL = "hollow: the baseline has not learned"


def plot_transfer_graph(frames: Frames, dataset: str) -> Figure | None:
    """Draw one graph of tasks per model, or return None if there is no single-source cell.

    An arrow's width and colour show the mean delta over the available algorithms. Negative transfer
    is dashed as well as red. Arrows are faded if no algorithm's delta is significant. Only the
    strongest arrows are drawn, so that they stay readable. All panels share one threshold, which
    the figure states. Nodes of tasks whose baseline has not learned are hollow.
    """
    cells = select_single_source_cells(frames, dataset)
    measured = cells[cells["delta"].notna()]
    if measured.empty:
        return None
    pairs = measured.groupby(["model", "source", "target"], sort=False)
    arrows = pairs.agg(delta=("delta", "mean"), significant=("significant", "any")).reset_index()
    tasks = frames.metadata.order_names("task", [*arrows["source"], *arrows["target"]])
    models = frames.metadata.order_names("model", arrows["model"])
    hollow = {
        model: {*tasks}.intersection(list_unlearned_targets(frames, dataset, model))
        for model in models
    }
    threshold = compute_arrow_threshold(arrows, ARROWS_PER_TASK * len(tasks))
    limit = max(compute_colour_limit(arrows["delta"].to_numpy(np.float64)), threshold)
    short = fit_short_names(tasks, frames.metadata.shorts)
    width = max(_GRAPH_PANEL * len(models), 5.4)
    figure = Figure(figsize=(width, _GRAPH_PANEL + 2), layout=ConstrainedLayoutEngine(w_pad=0.1))
    columns = count_columns(len(models), _LEAST_PANEL, len(models))
    panels = figure.subplots(-(-len(models) // columns), columns, squeeze=False)
    for spare in panels.flat[len(models) :]:
        spare.remove()
    for axes, model in zip(panels.flat, models, strict=False):
        of_model = arrows[arrows["model"] == model]
        drawn = of_model[of_model["delta"].abs() >= threshold]
        _draw_arrows(axes, drawn, tasks, limit)
        _draw_nodes(axes, dataset, tasks, short, hollow[model])
        name = fold_name(model, _GRAPH_PANEL - 0.2, 10)
        axes.set_title(f"{name}\n{len(drawn)} of {len(of_model)} pairs drawn", fontsize=10)
    entries = _list_arrow_entries(dataset, tasks, arrows, threshold, limit)
    if any(hollow.values()):
        sample = Line2D([], [], ls="", marker="o", mfc="white", mec=INK, mew=_RIM, ms=8)
        sample.set_label(UNLEARNED_LABEL)
        entries.append(sample)
    add_legend_below(figure, entries, _format_arrow_note(threshold))
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


def _draw_arrows(axes: Axes, arrows: pd.DataFrame, tasks: list[str], limit: float) -> None:
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


def _draw_nodes(
    axes: Axes, dataset: str, tasks: list[str], short: dict[str, str], hollow: Collection[str]
) -> None:
    for task, (x, y) in zip(tasks, _place_nodes(len(tasks)), strict=True):
        look = LOOKS[get_task_type(dataset, task)]
        fill, edge, rim = look.colour, INK, 0.8
        if task in hollow:
            fill, edge, rim = "white", look.colour, _RIM
        size = _NODE + 0.8 - rim  # half of the edge is outside of the marker
        axes.plot(x, y, look.marker, ms=size, mfc=fill, mec=edge, mew=rim, zorder=3, clip_on=False)
        axes.annotate(
            short[task],
            (x, y),
            xytext=(_NODE * 0.95 * x, _NODE * 0.95 * y),
            textcoords="offset points",
            ha="center" if abs(x) < 0.3 else "left" if x > 0 else "right",
            va="center" if abs(y) < 0.3 else "bottom" if y > 0 else "top",
            fontsize=LABEL_POINTS,
        )


def _list_arrow_entries(
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


def _format_arrow_note(threshold: float) -> str:
    shown = f"Arrows show effects of at least {threshold:g} points."
    return (
        f"{shown if threshold else 'Arrows show all pairs.'} Dashed arrows show negative transfer."
    )
