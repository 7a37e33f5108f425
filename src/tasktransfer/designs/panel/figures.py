"""Figures of a panel study: correlations, few-shot curves, and experts by rated set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tasktransfer.designs.panel.names import CONTROLS, OWN_MINUS_OTHERS, get_domain
from tasktransfer.present.kit import matrix
from tasktransfer.present.kit.panels import (
    create_panels,
    draw_reference_line,
    draw_vertical_line,
    fit_figure_to_panels,
    label_line_ends,
    make_line_entry,
    make_panel_grid,
    set_panel_title,
)
from tasktransfer.present.kit.series import Estimate, plot_forest, plot_line_with_band
from tasktransfer.present.kit.style import (
    DIVERGING,
    INK,
    LABEL_POINTS,
    Look,
    add_legend_below,
    add_title,
    choose_text_colour,
    compute_colour_limit,
    fold_name,
    get_series_look,
)
from tasktransfer.present.numbers import format_number
from tasktransfer.results.frames import Frames

SPEARMAN = "Spearman's correlation × 100"


def plot_correlations(frames: Frames) -> Figure | None:
    """Plot correlations: one panel per rated set, one row per method.

    Vertical lines mark the best untrained control and the ceiling. None if no method is trained.
    """
    own, metadata = frames["correlations"], frames.metadata
    methods = [m for m in metadata.order_names("method", own["method"]) if m not in CONTROLS]
    sets = metadata.order_names("set", own["set"])
    inside = dict(zip(own["set"], own["in_domain"], strict=True))
    sets.sort(key=lambda name: not inside[name])
    if not methods:
        return None
    width, height = 2.5, 0.24 * (len(methods) + 1.6)
    figure, axes = create_panels(len(sets), width, height)
    looks = {method: get_series_look(rank) for rank, method in enumerate(methods)}
    for panel, name in zip(axes, sets, strict=True):
        mine = {row["method"]: row for row in own[own["set"] == name].to_dict("records")}
        rows = [[_make_estimate(mine[m], looks[m])] if m in mine else [] for m in methods]
        plot_forest(panel, rows, methods)
        set_panel_title(panel, name if inside[name] else f"{name} (out of domain)")
    axes[0].set_ylim(len(methods) - 0.1, -0.9)  # lines are named above and below
    low, high = axes[0].get_xlim()
    axes[0].set_xlim(min(low, -5), max(high, 100))  # shared by all panels, up to the maximum
    ceilings = frames["ceilings"].set_index("set")["ceiling"]
    for panel, name in zip(axes, sets, strict=True):
        panel.axvline(0, color=INK, linewidth=0.8, zorder=1)
        controls = own[(own["set"] == name) & own["method"].isin(CONTROLS)]
        if len(controls):
            best = controls.sort_values("value").to_dict("records")[-1]
            label = f"{best['method']} {format_number(best['value'], '.0f')}"
            draw_vertical_line(panel, best["value"], label, below=True)
        if np.isfinite(ceilings.get(name, np.nan)):
            draw_vertical_line(panel, ceilings[name], "ceiling", style=":")
    for panel in axes[-make_panel_grid(axes[0]).shape[1] :]:
        panel.set_xlabel(SPEARMAN, fontsize=LABEL_POINTS)
    add_title(figure, "Correlation with human ratings, by rated set", _count_seeds(own), metadata)
    fit_figure_to_panels(figure, axes, width, height)
    return figure


def _make_estimate(row: Mapping[Any, Any], look: Look) -> Estimate:
    return Estimate("", row["value"], row["low"], row["high"], look, hollow=not row["q"] <= 0.05)


def _count_seeds(frame: pd.DataFrame) -> int:
    return int(frame["seeds"].max())


def plot_few_shot(frames: Frames) -> Figure | None:
    """Plot few-shot correlation by percentage of ratings, in panels by rated set and sampling.

    None if there is no few-shot transfer.
    """
    few, metadata = frames["few"], frames.metadata
    drawn = few[few["by"] != ""]
    shown = drawn[["set", "by"]].drop_duplicates().itertuples(index=False, name=None)
    sets = metadata.order_names("set", drawn["set"])
    places = sorted(shown, key=lambda pair: (sets.index(pair[0]), pair[1]))
    if not places:
        return None
    methods = metadata.order_names("method", drawn["method"])
    looks = {method: get_series_look(rank) for rank, method in enumerate(methods)}
    width, height = 2.9, 2.3
    figure, axes = create_panels(len(places), width, height)
    for panel, (name, by) in zip(axes, places, strict=True):
        mine = drawn[(drawn["set"] == name) & (drawn["by"] == by)].sort_values("percent")
        for method, some in mine.groupby("method", sort=False):
            x, value, spread = (
                some[name].to_numpy(float) for name in ("percent", "held_out", "held_out_sd")
            )
            spread = np.nan_to_num(spread)
            held_out, every = (replace(looks[str(method)], line=line) for line in ("-", ":"))
            plot_line_with_band(panel, x, value, held_out, low=value - spread, high=value + spread)
            plot_line_with_band(panel, x, some["all_items"].to_numpy(float), every)
        set_panel_title(panel, f"{name}, {by} sampled")
        panel.set_xlabel("percent of the ratings sampled", fontsize=LABEL_POINTS)
    axes[0].set_ylabel("Spearman × 100", fontsize=LABEL_POINTS)
    most = drawn["percent"].max()
    axes[0].set_xlim(-0.04 * most, 1.5 * most)  # with room for names on the right
    axes[0].set_xticks(sorted(drawn["percent"].unique()))
    for panel, (name, by) in zip(axes, places, strict=True):
        ends = drawn[(drawn["set"] == name) & (drawn["by"] == by) & (drawn["percent"] == most)]
        named = ends[["percent", "held_out", "method"]].itertuples(index=False, name=None)
        label_line_ends(panel, [(x, y, m, looks[m]) for x, y, m in named], height)
        control = few[(few["set"] == name) & (few["method"] == "cosine-last")]["all_items"]
        for value in control:
            draw_reference_line(panel, value, "cosine-last")
    band = "; band: standard deviation over samples" if drawn["held_out_sd"].notna().any() else ""
    entries = [
        make_line_entry(f"held-out items{band}", Look(INK, "", "-")),
        make_line_entry("all items, including training items", Look(INK, "", ":")),
    ]
    add_legend_below(figure, entries)
    add_title(figure, "Correlation after few-shot training on ratings", None, metadata)
    fit_figure_to_panels(figure, axes, width, height)
    return figure


_NAME_SHARE = 0.8
"""Fraction of a column's width that a line of its name may fill: paper style is narrower."""


def plot_experts(frames: Frames) -> Figure | None:
    """Plot experts' correlations in one panel per method: experts are rows, rated sets columns.

    None if there are no experts.
    """
    own, metadata = frames["experts"], frames.metadata
    methods = metadata.order_names("method", own["method"])
    if not methods:
        return None
    sets = metadata.order_names("set", own["set"])
    rows = metadata.order_names("domain", own[own["expert"] != OWN_MINUS_OTHERS]["expert"])
    compared = bool((own["expert"] == OWN_MINUS_OTHERS).any())
    limit = compute_colour_limit(own["value"].to_numpy(float), most=100.0)
    width, height = 0.95 * max(2, len(sets)), 0.42 * (len(rows) + 1.3 * compared)
    columns = 2 if len(sets) < 6 else 1
    figure, axes = create_panels(len(methods), width, height, columns=columns)
    colour = ScalarMappable(Normalize(-limit, limit), colormaps[DIVERGING])
    for panel, method in zip(axes, methods, strict=True):
        _draw_matrix(panel, own[own["method"] == method], rows, sets, colour, compared=compared)
        room = _NAME_SHARE * width / len(sets)
        panel.set_xticklabels([fold_name(name, room, LABEL_POINTS) for name in sets])
        set_panel_title(panel, method)
    bar = figure.colorbar(colour, ax=axes)
    bar.set_label("Spearman × 100", fontsize=LABEL_POINTS)
    bar.ax.tick_params(labelsize=LABEL_POINTS)
    add_legend_below(figure, [Patch(**matrix.FRAME, label="the set's own domain")])
    add_title(figure, "Correlation of each expert, by rated set", _count_seeds(own), metadata)
    fit_figure_to_panels(figure, axes, width, height, cells=True)
    return figure


def _draw_matrix(
    axes: Axes,
    own: pd.DataFrame,
    rows: list[str],
    sets: list[str],
    colour: ScalarMappable,
    *,
    compared: bool,
) -> None:
    """Draw a matrix of experts by sets, and below it the own expert minus the others' mean."""
    last = len(rows) + 0.3
    heights = {**{name: float(n) for n, name in enumerate(rows)}, OWN_MINUS_OTHERS: last}
    values = own.to_dict("records")
    corners = [(float(sets.index(v["set"])), heights[v["expert"]]) for v in values]
    colours = [colour.to_rgba(v["value"]) for v in values]
    matrix.fill_cells(axes, corners, colours)
    matrix.frame_significant_cells(
        axes, [c for c, v in zip(corners, values, strict=True) if _is_own_domain(v)]
    )
    for corner, value, shade in zip(corners, values, colours, strict=True):
        text = format_number(
            value["value"], "+.0f" if value["expert"] == OWN_MINUS_OTHERS else ".0f"
        )
        matrix.write_cell_text(axes, corner, text, LABEL_POINTS, choose_text_colour(shade))
    axes.set_xlim(0, len(sets))
    axes.set_ylim(last + 1 if compared else len(rows), 0)
    axes.set_xticks(np.arange(len(sets)) + 0.5, sets, fontsize=LABEL_POINTS)
    names = {**heights} if compared else {name: heights[name] for name in rows}
    axes.set_yticks([y + 0.5 for y in names.values()], [*names], fontsize=LABEL_POINTS)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _is_own_domain(row: Mapping[Any, Any]) -> bool:
    return bool(row["own"]) and row["expert"] == get_domain(str(row["set"]))
