"""Bar chart of multi-source runs and the means of their single sources (paper, section 6.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tasktransfer.designs.transfer.collect import SOURCES_CHOSEN_BY
from tasktransfer.designs.transfer.runs import (
    explain_short_names,
    fit_short_names,
    get_algorithm_label,
)
from tasktransfer.designs.transfer.tables.multi_source_tables import compute_multi_source_gains
from tasktransfer.present.kit.paper import add_caption_notes
from tasktransfer.present.kit.style import (
    INK,
    MISSING,
    PatchStyle,
    add_legend_below,
    add_title,
    fold_name,
    format_signed,
    get_series_look,
)
from tasktransfer.results.frames import Frames

_NAMES = ["model", "algorithm", "target", "source"]
_PAIR = 0.8
"""Fraction of the axis unit that the bars of one target take."""


def plot_multi_source_bars(frames: Frames, dataset: str) -> Figure | None:
    """Draw a dataset's multi-source runs in one panel per model, or return None without any.

    A solid bar is the delta of the run on all sources (mean over seeds). The pale bar on its left
    is the mean delta of the same sources one at a time. An asterisk marks a mean over fewer single
    sources or seeds than the run has. A hatched bar marks a missing value.
    """
    deltas, missing = frames["deltas"], frames["missing_runs"]
    gains = compute_multi_source_gains(deltas[deltas["dataset"] == dataset])
    absent = missing[(missing["dataset"] == dataset) & (missing["n_sources"] > 1)]
    shown = pd.concat([frame[_NAMES] for frame in (gains, absent) if len(frame)] or [gains[_NAMES]])
    if shown.empty:
        return None
    models = frames.metadata.order_names("model", shown["model"])
    algorithms = frames.metadata.order_names("algorithm", shown["algorithm"])
    groups = list(dict.fromkeys(zip(shown["target"], shown["source"], strict=True)))
    tasks = [task for target, source in groups for task in (target, *source.split("+"))]
    names = fit_short_names(dict.fromkeys(tasks), frames.metadata.shorts)
    width = max(5.6, 1.4 + len(groups) * max(1.6, 0.9 * len(algorithms)))
    figure = Figure(figsize=(width, 2.4 * len(models) + 1.8), layout="constrained")
    panels = figure.subplots(len(models), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
    for axes, model in zip(panels, models, strict=True):
        _draw_panel(axes, gains[gains["model"] == model], groups, algorithms)
        axes.set_ylabel(f"{fold_name(model, 2.0, 10)}\nΔ score, points", fontsize=10)
    panels[0].set_ylim(_compute_axis_limits(gains))
    labels = [
        f"{names[target]}\nfrom " + " + ".join(names[part] for part in source.split("+"))
        for target, source in groups
    ]
    panels[-1].set_xticks(range(len(groups)), labels, fontsize=8)
    _draw_legend(figure, algorithms, gains, len(models) * len(algorithms) * len(groups))
    what = f"{dataset}: several sources together, compared with each source alone"
    if frames.metadata.facts.get(SOURCES_CHOSEN_BY) == "test":
        what += " (chosen by test scores)"
    add_title(figure, what, int(max(gains["n_seeds"], default=0)), frames.metadata)
    add_caption_notes(figure, explain_short_names(names))
    return figure


def get_bar_look(rank: int) -> PatchStyle:
    """Return the colour of an algorithm's bars, and a pattern that is readable without colour."""
    look = get_series_look(rank)
    return {"facecolor": look.colour, "edgecolor": "white", "hatch": look.hatch, "linewidth": 0.0}


def _compute_axis_limits(gains: pd.DataFrame) -> tuple[float, float]:
    """Return axis limits that include zero and leave room for the numbers at the bars' ends."""
    values = [0.0, *gains["multi_delta"], *gains["single_delta"].dropna()]
    low, high = min(values), max(values)
    room = 0.28 * ((high - low) or 1.0)
    return low - room, high + room


def _draw_panel(
    axes: Axes, gains: pd.DataFrame, groups: list[tuple[str, str]], algorithms: list[str]
) -> None:
    rows = {(row.target, row.source, row.algorithm): row for row in gains.itertuples()}
    bar = _PAIR / (2 * len(algorithms))
    for index, group in enumerate(groups):
        for rank, algorithm in enumerate(algorithms):
            left = index - _PAIR / 2 + 2 * rank * bar + bar / 2
            look = get_bar_look(rank)
            row: Any = rows.get((*group, algorithm))
            single = np.nan if row is None else row.single_delta
            mark = "" if row is None or row.complete else "*"
            _draw_bar(axes, left, 0.92 * bar, single, mark, **look, alpha=0.4)
            multi = np.nan if row is None else row.multi_delta
            _draw_bar(axes, left + bar, 0.92 * bar, multi, "", **look)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_bar(axes: Axes, x: float, width: float, delta: float, mark: str, **style: Any) -> None:
    if np.isnan(delta):
        low, high = axes.get_xaxis_transform(), 0.12
        axes.bar(x, high, width, transform=low, **MISSING)
        return
    axes.bar(x, delta, width, **style)
    axes.annotate(
        format_signed(delta) + mark,
        (x, delta),
        xytext=(0, 2 if delta >= 0 else -2),
        textcoords="offset points",
        ha="center",
        va="bottom" if delta >= 0 else "top",
        fontsize=6.5,
        rotation=90,
    )


def _draw_legend(figure: Figure, algorithms: list[str], gains: pd.DataFrame, planned: int) -> None:
    entries = [
        Patch(**get_bar_look(rank), label=get_algorithm_label(name))
        for rank, name in enumerate(algorithms)
    ]
    entries.append(Patch(facecolor="#555555", label="all sources together"))
    entries.append(Patch(facecolor="#555555", alpha=0.4, label="mean of its single sources"))
    if not gains["complete"].all():
        entries.append(Patch(facecolor="none", label="* some single sources missing"))
    if len(gains) < planned or gains["single_delta"].isna().any():
        entries.append(Patch(**MISSING, label="missing"))
    add_legend_below(figure, entries)
