"""Figures 7 and 8 of the paper: mean transfer in a dataset over all models and algorithms."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tasktransfer.core.messages import format_quantity
from tasktransfer.designs.transfer.figures.one_dataset import (
    count_seeds,
    select_single_source_cells,
)
from tasktransfer.designs.transfer.tables.names import explain_short_names, fit_short_names
from tasktransfer.present.kit import matrix as cell_grid
from tasktransfer.present.kit.paper import add_caption_notes
from tasktransfer.present.kit.style import (
    DIVERGING,
    add_legend_below,
    add_title,
    choose_text_colour,
    compute_colour_limit,
    find_exceeded_ends,
    fit_panels,
    format_signed,
)
from tasktransfer.results.frames import Frames

_CELL = 0.52
"""Width and height of a cell, inches."""
_GAP = 0.25
"""Gap between the matrix and its margins, cells."""


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
    far = _draw_panel(axes, pairs, tasks, limit, expected, scale)
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


def _draw_panel(
    axes: Axes,
    pairs: pd.DataFrame,
    tasks: list[str],
    limit: float,
    expected: int,
    scale: float,
) -> list[cell_grid.Corner]:
    """Draw the cells that have a number, and return those that exceed the colour scale."""
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
