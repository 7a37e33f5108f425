"""The study's figures: correlations by set and method, few-shot curves, experts by rated set."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tasktransfer.designs.panel.names import CONTROLS, OWN_MINUS_OTHERS, domain_of
from tasktransfer.present.kit import matrix
from tasktransfer.present.kit.panels import (
    label_ends,
    line_entry,
    name_panel,
    panels,
    reference_line,
    upright_line,
)
from tasktransfer.present.kit.series import Estimate, forest, line_with_band
from tasktransfer.present.kit.style import (
    DIVERGING,
    INK,
    LABEL_POINTS,
    Look,
    colour_limit,
    entitle,
    legend_below,
    readable_on,
    series_look,
)
from tasktransfer.present.view import View

SPEARMAN = "Spearman's correlation × 100"


def correlations(view: View) -> Figure | None:
    """A panel a rated set, a row a method; lines: the best of what nobody trained, the ceiling."""
    own, metadata = view["correlations"], view.metadata
    methods = [m for m in metadata.ordered("method", own["method"]) if m not in CONTROLS]
    sets = metadata.ordered("set", own["set"])
    inside = dict(zip(own["set"], own["in_domain"], strict=True))
    sets.sort(key=lambda name: not inside[name])
    if not methods:
        return None
    figure, axes = panels(len(sets), 2.5, 0.24 * len(methods) + 0.75)
    looks = {method: series_look(rank) for rank, method in enumerate(methods)}
    for panel, name in zip(axes, sets, strict=True):
        mine = own[own["set"] == name].set_index("method")
        rows = [
            [_estimate(mine.loc[method], looks[method])] if method in mine.index else []
            for method in methods
        ]
        forest(panel, rows, methods)
        name_panel(panel, name if inside[name] else f"{name} (out of domain)")
    low, high = axes[0].get_xlim()
    axes[0].set_xlim(min(low, -5), max(high, 100))  # shared: what could be reached is seen
    ceilings = view["ceilings"].set_index("set")["ceiling"]
    for panel, name in zip(axes, sets, strict=True):
        panel.axvline(0, color=INK, linewidth=0.8, zorder=1)
        controls = own[(own["set"] == name) & own["method"].isin(CONTROLS)]
        if len(controls):
            best = controls.loc[controls["value"].idxmax()]
            label = f"{best['method']} {best['value']:.0f}"
            upright_line(panel, best["value"], label, below=True)
        if np.isfinite(ceilings.get(name, np.nan)):
            upright_line(panel, ceilings[name], "ceiling", style=":")
    figure.supxlabel("")
    for panel in axes[-min(len(axes), 4) :]:
        panel.set_xlabel(SPEARMAN, fontsize=LABEL_POINTS)
    entitle(figure, "Correlation with human ratings, by rated set", _seeds(own), metadata)
    return figure


def _estimate(row: pd.Series, look: Look) -> Estimate:
    return Estimate("", row["value"], row["low"], row["high"], look, hollow=not row["q"] <= 0.05)


def _seeds(frame: pd.DataFrame) -> int:
    return int(frame["seeds"].max())


def few_shot(view: View) -> Figure | None:
    """A panel a rated set and way of drawing: correlation by share of the ratings."""
    few, metadata = view["few"], view.metadata
    drawn = few[few["by"] != ""]
    shown = drawn[["set", "by"]].drop_duplicates().itertuples(index=False, name=None)
    sets = metadata.ordered("set", drawn["set"])
    places = sorted(shown, key=lambda pair: (sets.index(pair[0]), pair[1]))
    if not places:
        return None
    methods = metadata.ordered("method", drawn["method"])
    looks = {method: series_look(rank) for rank, method in enumerate(methods)}
    width, height = 2.9, 2.3
    figure, axes = panels(len(places), width, height)
    for panel, (name, by) in zip(axes, places, strict=True):
        mine = drawn[(drawn["set"] == name) & (drawn["by"] == by)].sort_values("percent")
        for method, some in mine.groupby("method", sort=False):
            look, spread = looks[str(method)], some["held_out_sd"].fillna(0)
            value = some["held_out"]
            line_with_band(
                panel, some["percent"], value, look, low=value - spread, high=value + spread
            )
            whole = Look(look.colour, look.marker, ":")
            line_with_band(panel, some["percent"], some["all_items"], whole)
        name_panel(panel, f"{name}, {by} drawn")
        panel.set_xlabel("percent of the ratings drawn", fontsize=LABEL_POINTS)
    axes[0].set_ylabel(SPEARMAN, fontsize=LABEL_POINTS)
    most = drawn["percent"].max()
    axes[0].set_xlim(-0.04 * most, 1.35 * most)  # names stand at the right
    for panel, (name, by) in zip(axes, places, strict=True):
        ends = drawn[(drawn["set"] == name) & (drawn["by"] == by) & (drawn["percent"] == most)]
        named = ends[["percent", "held_out", "method"]].itertuples(index=False, name=None)
        label_ends(panel, [(x, y, m, looks[m]) for x, y, m in named], height)
        control = few[(few["set"] == name) & (few["method"] == "cosine-last")]["all_items"]
        for value in control:
            reference_line(panel, value, "cosine-last, untrained")
    plain = Look(INK, "o", "-")
    entries = [
        line_entry("held-out items; band: standard deviation over draws", plain),
        line_entry("all items, those of training included", Look(INK, "o", ":")),
    ]
    legend_below(figure, entries)
    entitle(figure, "Correlation after learning a share of the ratings", None, metadata)
    return figure


def experts(view: View) -> Figure | None:
    """Which expert rates what best: a row an expert, a column a rated set, a panel a method."""
    own, metadata = view["experts"], view.metadata
    methods = metadata.ordered("method", own["method"])
    if not methods:
        return None
    sets = metadata.ordered("set", own["set"])
    rows = metadata.ordered("domain", own[own["expert"] != OWN_MINUS_OTHERS]["expert"])
    compared = bool((own["expert"] == OWN_MINUS_OTHERS).any())
    limit = colour_limit(own["value"].to_numpy(float), most=100.0)
    height = 0.42 * (len(rows) + 1.3 * compared)
    figure, axes = panels(
        len(methods), max(2.6, 0.8 * len(sets)), height + 0.9, columns=1 + (len(sets) < 6)
    )
    colour = ScalarMappable(Normalize(-limit, limit), colormaps[DIVERGING])
    for panel, method in zip(axes, methods, strict=True):
        _matrix(panel, own[own["method"] == method], rows, sets, colour, compared=compared)
        name_panel(panel, method)
    bar = figure.colorbar(colour, ax=axes, label=SPEARMAN, shrink=0.9)
    bar.outline.set_visible(False)  # type: ignore[operator]
    legend_below(figure, [Patch(**matrix.FRAME, label="the set's own domain")])
    entitle(figure, "Which expert rates which set how well", _seeds(own), metadata)
    return figure


def _matrix(
    axes: Axes,
    own: pd.DataFrame,
    rows: list[str],
    sets: list[str],
    colour: ScalarMappable,
    *,
    compared: bool,
) -> None:
    """Cells of experts by sets; below them how far the domain's own is above the others' mean."""
    last = len(rows) + 0.3
    heights = {**{name: float(n) for n, name in enumerate(rows)}, OWN_MINUS_OTHERS: last}
    values = own.to_dict("records")
    corners = [(float(sets.index(v["set"])), heights[v["expert"]]) for v in values]
    colours = [colour.to_rgba(v["value"]) for v in values]
    matrix.fill(axes, corners, colours)
    matrix.frame(axes, [c for c, v in zip(corners, values, strict=True) if _of_own(v)])
    for corner, value, shade in zip(corners, values, colours, strict=True):
        sign = "+" if value["expert"] == OWN_MINUS_OTHERS else ""
        text = f"{value['value']:{sign}.0f}".replace("-", "−")
        matrix.write(axes, corner, text, LABEL_POINTS, readable_on(shade))
    axes.set_xlim(0, len(sets))
    axes.set_ylim(last + 1 if compared else len(rows), 0)
    turn = {"rotation": 30, "ha": "right"} if len(sets) > 3 else {}
    axes.set_xticks(np.arange(len(sets)) + 0.5, sets, fontsize=LABEL_POINTS, **turn)
    names = {**heights} if compared else {name: heights[name] for name in rows}
    axes.set_yticks([y + 0.5 for y in names.values()], [*names], fontsize=LABEL_POINTS)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _of_own(row: dict[str, object]) -> bool:
    return bool(row["own"]) and row["expert"] == domain_of(str(row["set"]))
