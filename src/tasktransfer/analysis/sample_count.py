"""Figure 5 of the paper: score delta by the sample count of the source and of the target."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tasktransfer.analysis.best_fit import best_fit, mean_interval
from tasktransfer.analysis.one_dataset import ordered, seeds_of, single_source_cells, train_sizes
from tasktransfer.analysis.results import Results
from tasktransfer.analysis.style import (
    INK,
    LABEL_POINTS,
    Look,
    entitle,
    legend_below,
    log_axis,
    series_look,
)

_DODGE = 0.018
"""How far the points of neighbouring models are apart, of the axis' length."""


def sample_count(results: Results, dataset: str) -> Figure | None:
    """Draw a panel for sources and one for targets; None when no cell's sizes are known.

    A point is a model's mean delta over all cells whose source (or target) has that many training
    samples, with its 95 % interval; tasks of equal size are one point. Lines are least squares of
    the cells' deltas on the logarithm of the count, with the 95 % interval of their mean.
    """
    cells = single_source_cells(results, dataset)
    cells = cells[cells["delta"].notna()]
    sizes = train_sizes(results, dataset)
    known = cells["source"].isin(sizes) | cells["target"].isin(sizes)
    if not known.any():
        return None
    models = ordered(results, "model", cells["model"])
    figure = Figure(figsize=(7.0, 4.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, role in zip(panels, ("source", "target"), strict=True):
        counted = cells[cells[role].isin(sizes)]
        counted = counted.assign(count=counted[role].map(sizes).astype(float))
        _draw(axes, counted, models)
        axes.set_title(f"as {role}", fontsize=10)
        axes.set_xlabel(f"Training samples of the {role}", fontsize=LABEL_POINTS + 0.5)
    panels[0].set_ylabel("Score delta, points", fontsize=LABEL_POINTS + 0.5)
    legend_below(
        figure,
        [
            Line2D([], [], color=look.colour, ls=look.line, marker=look.marker, ms=5, label=model)
            for model, look in _looks(models)
        ],
        "Points: means with 95 % intervals; lines: least squares over all cells, bands: 95 %",
    )
    what = f"{dataset}: score delta by sample count of source and target"
    entitle(figure, what, seeds_of(cells), results.metadata)
    return figure


def _looks(models: list[str]) -> list[tuple[str, Look]]:
    return [(model, series_look(rank)) for rank, model in enumerate(models)]


def _draw(axes: Axes, cells: pd.DataFrame, models: list[str]) -> None:
    axes.axhline(0, color=INK, linewidth=0.7, zorder=1)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    if cells.empty:
        axes.set_xticks([])
        return
    log_axis(axes, [float(cells["count"].min()), float(cells["count"].max())])
    low, high = axes.get_xlim()
    for rank, (model, look) in enumerate(_looks(models)):
        here = cells[cells["model"] == model]
        _draw_fit(axes, here, look)
        beside = (high / low) ** (_DODGE * (rank - (len(models) - 1) / 2))
        for count, deltas in here.groupby("count")["delta"]:
            mean, lower, upper = mean_interval(deltas.to_numpy(np.float64))
            place = float(count) * beside  # type: ignore[arg-type]
            axes.plot([place, place], [lower, upper], color=look.colour, lw=1, zorder=4)
            axes.plot(place, mean, look.marker, color=look.colour, ms=5, mec="white", zorder=5)


def _draw_fit(axes: Axes, cells: pd.DataFrame, look: Look) -> None:
    log_count = np.log10(cells["count"].to_numpy(np.float64))
    fit = best_fit(log_count, cells["delta"].to_numpy(np.float64))
    if fit is None:
        return
    at = np.linspace(log_count.min(), log_count.max(), 60)
    line, low, high = fit.band(at)
    axes.fill_between(10**at, low, high, color=look.colour, alpha=0.15, lw=0, zorder=2)
    axes.plot(10**at, line, color=look.colour, ls=look.line, lw=1.8, zorder=3)
