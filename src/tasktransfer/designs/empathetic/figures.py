"""Figures of an empathetic study: scores, differences from Base, and ratios of human choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from tasktransfer.designs.empathetic.human import read_figure5
from tasktransfer.designs.empathetic.methods import BASE, CONTROLS
from tasktransfer.designs.empathetic.statistics import PERPLEXITY
from tasktransfer.present.columns import Row
from tasktransfer.present.html import to_records
from tasktransfer.present.kit.matrix import fill_cells, write_cell_text
from tasktransfer.present.kit.panels import (
    draw_vertical_line,
    make_line_entry,
    set_panel_title,
)
from tasktransfer.present.kit.series import (
    GREY,
    Estimate,
    draw_forests,
    draw_zero_line,
    finish_forests,
)
from tasktransfer.present.kit.style import (
    DIVERGING,
    LABEL_POINTS,
    Look,
    add_heading,
    choose_text_colour,
    get_series_look,
    set_log_x_axis,
)
from tasktransfer.present.numbers import MOST_Q, excludes_zero
from tasktransfer.results.frames import Frames

RANGE = 30
"""Upper end of the colour scale for ratios; the lower end is its inverse. Ratios are clipped."""
SPREAD = 3
"""Ratio of the largest to the smallest perplexity above which the axis is logarithmic."""


def plot_scores(frames: Frames) -> Figure | None:
    """Plot scores: one panel per measure, one line per method.

    Marks are means over seeds with intervals, one per pool of candidates. None if there are no
    scores.
    """
    rows = frames["summary"]
    rows = rows[rows["score"].isin(frames.metadata.order["score"])]
    if rows.empty:
        return None
    looks = _assign_styles(rows)

    def build_estimate(row: Row) -> Estimate:
        look = looks[row["pool"]]
        return Estimate("", row["value"], row["low"], row["high"], look)

    figure, axes = _draw_forests(frames, rows, build_estimate)
    for panel, score in axes.items():
        some = rows[rows["score"] == score]
        ends = some[["value", "low", "high"]].stack()
        if (some["measure"] == PERPLEXITY).all() and ends.max() > SPREAD * ends.min():
            set_log_x_axis(panel, [*ends])
        base = some[some["method"] == BASE]
        if len(base):
            draw_vertical_line(panel, float(base["value"].iloc[0]), "Base", below=True)
        if str(score).startswith("P@1,"):
            _show_chance_level(panel, str(score), 100 / int(str(score).removeprefix("P@1,")))
    _finish_figure(figure, "Scores of each method", rows, frames, looks)
    return figure


def _show_chance_level(panel: Axes, score: str, chance: float) -> None:
    """Add chance level to the panel's title, and a line if it lies within the panel's limits."""
    set_panel_title(panel, f"{score}, chance {chance:.3g}")
    low, high = panel.get_xlim()
    if low <= chance <= high:
        draw_vertical_line(panel, chance, "chance", style=":")


def plot_differences(frames: Frames) -> Figure | None:
    """Plot differences from Base: hollow if not significant, controls in grey.

    None if there are no differences.
    """
    rows = frames["differences"].query("setting != 'classifier'").dropna(subset="difference")
    if rows.empty:
        return None
    looks = _assign_styles(rows)

    def build_estimate(row: Row) -> Estimate:
        look = looks[row["pool"]]
        if row["method"] in CONTROLS:
            look = replace(look, colour=GREY)
        sure = row["q"] <= MOST_Q and excludes_zero(row["low"], row["high"])
        return Estimate("", row["difference"], row["low"], row["high"], look, hollow=not sure)

    figure, axes = _draw_forests(frames, rows, build_estimate)
    for panel in axes:
        draw_zero_line(panel)
    more = [(f"Filled marks differ significantly from Base (q ≤ {MOST_Q}); hollow marks do not.")]
    if rows["q"].isna().all():
        more = [
            "Hollow marks show differences that are not tested, because each method has one run."
        ]
    if rows["method"].isin(CONTROLS).any():
        more.append("Grey marks show controls, for which no q value is computed.")
    _finish_figure(figure, "Differences from Base", rows, frames, looks, more)
    return figure


def _assign_styles(rows: pd.DataFrame) -> dict[str, Look]:
    """Map each pool of candidates to its colour and marker."""
    pools = [pool for pool in dict.fromkeys(rows["pool"]) if pool]
    return {
        "": get_series_look(0),
        **{pool: get_series_look(rank) for rank, pool in enumerate(pools)},
    }


def _draw_forests(
    frames: Frames, rows: pd.DataFrame, estimate: Callable[[Row], Estimate]
) -> tuple[Figure, dict[Axes, str]]:
    """Return a figure with one panel per score, which shows methods in the same order."""
    names = frames.metadata.order_names("name", rows["name"])
    shown = frames.metadata.order_names("score", rows["score"])
    panels = {
        score: {
            name: [estimate(row) for row in to_records(some[some["name"] == name])]
            for name in names
        }
        for score in shown
        for some in (rows[rows["score"] == score],)
    }
    figure, axes = draw_forests(names, panels)
    return figure, dict(zip(axes, shown, strict=True))


def _finish_figure(
    figure: Figure,
    title: str,
    rows: pd.DataFrame,
    frames: Frames,
    looks: Mapping[str, Look],
    more: Sequence[str] = (),
) -> None:
    """Add legend, title and notes, then resize the figure to fit its panels."""
    pools = [pool for pool in looks if pool]
    finish_forests(
        figure,
        title,
        rows["name"].nunique(),
        int(rows["seeds"].max()),
        frames.metadata,
        entries=[make_line_entry(pool, looks[pool], linestyle="") for pool in pools]
        if len(pools) > 1
        else (),
        heading="Candidates of retrieved replies:",
        notes=more,
    )


def plot_human_comparisons(frames: Frames) -> Figure:
    """Plot the published Figure 5."""
    return plot_ratios(read_figure5(), "Human preferences: Figure 5 of Rashkin et al., cited")


def plot_ratios(values: pd.DataFrame, title: str) -> Figure:
    """Plot how often each row's model was chosen over the column's model, as in Figure 5.

    The diagonal and pairs without a ratio (NaN) stay empty. Ratios of 0 and infinity have the
    colours of the scale's ends.
    """
    cells = values.to_numpy(float)
    count = len(cells)
    size = max(3.5, 0.46 * count)
    figure = Figure(figsize=(size + 2.2, size + 1.2), layout="constrained")
    axes = figure.subplots()
    scale, colours = LogNorm(1 / RANGE, RANGE), colormaps[DIVERGING]
    filled = [
        (row, column)
        for row in range(count)
        for column in range(count)
        if row != column and not np.isnan(cells[row, column])
    ]
    shades = [colours(scale(np.clip(cells[cell], 1 / RANGE, RANGE))) for cell in filled]
    fill_cells(axes, [(column, row) for row, column in filled], shades)
    for (row, column), shade in zip(filled, shades, strict=True):
        write_cell_text(
            axes, (column, row), _format_ratio(cells[row, column]), 6.5, choose_text_colour(shade)
        )
    _label_sides(axes, [str(name) for name in values.columns], [str(name) for name in values.index])
    bar = figure.colorbar(ScalarMappable(scale, colours), ax=axes, shrink=0.6)
    bar.set_label("times row was preferred / times column was preferred", fontsize=LABEL_POINTS)
    ends = [1 / RANGE, 0.1, 1 / 3, 1, 3, 10, RANGE]
    bar.set_ticks(ends, labels=["1/30", "1/10", "1/3", "1", "3", "10", "30"])
    bar.minorticks_off()
    add_heading(figure, [title])
    return figure


def _format_ratio(value: float) -> str:
    return "∞" if np.isinf(value) else f"{value:.3g}"


def _label_sides(axes: Axes, columns: Sequence[str], rows: Sequence[str]) -> None:
    middles = np.arange(len(rows)) + 0.5
    axes.set_xlim(0, len(columns))
    axes.set_ylim(len(rows), 0)
    axes.set_aspect("equal")
    axes.set_xticks(middles, columns, rotation=60, ha="right", rotation_mode="anchor")
    axes.set_yticks(middles, rows)
    axes.tick_params(labelsize=LABEL_POINTS, length=0)
    axes.spines[:].set_visible(False)
