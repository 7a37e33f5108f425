"""Figure 6 of the paper: lengths of utterances and dialogues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tasktransfer.present.kit.panels import create_panels
from tasktransfer.present.kit.style import (
    ALGORITHM_COLOURS,
    INK,
    LABEL_POINTS,
    add_legend_below,
    add_title,
    despine,
)
from tasktransfer.results.frames import Frames

_UNITS = {
    "utterance_words": ("Utterance length, words", "utterances"),
    "dialogue_turns": ("Dialogue length, turns", "dialogues"),
    "dialogue_words": ("Dialogue length, words", "dialogues"),
}
"""Axis label and counted noun by unit."""
_SHOWN = 0.99
"""Fraction of the utterances or dialogues that the axis covers."""
_MOST_BARS = 40


def plot_lengths(frames: Frames, dataset: str) -> Figure | None:
    """Draw one histogram of lengths per unit, or return None if the study lacks dialogues.

    Bars are percentages of all utterances or dialogues of the release. The axis ends where 99 % are
    shown; the panel states how many are longer, and the greatest length. If the dataset's releases
    have no turns, the figure says so.
    """
    if frames["lengths"].empty or dataset not in frames.metadata.order["dataset"]:
        return None
    counted = frames["lengths"][frames["lengths"]["dataset"] == dataset]
    units = [unit for unit in _UNITS if (counted["unit"] == unit).any()]
    if not units:
        return _draw_turnless_figure(frames, dataset)
    figure, panels = create_panels(len(units), 2.5, 2.5, shared="none")
    for axes, unit in zip(panels, units, strict=True):
        _draw_panel(axes, counted[counted["unit"] == unit], *_UNITS[unit])
    add_legend_below(
        figure,
        [
            Line2D([], [], color=INK, ls="-", lw=1.4, label="median"),
            Line2D([], [], color=INK, ls=":", lw=1.8, label="mean"),
        ],
    )
    what = f"{dataset}: lengths of utterances and dialogues"
    add_title(figure, what, None, frames.metadata)
    return figure


def _draw_turnless_figure(frames: Frames, dataset: str) -> Figure:
    figure = Figure(figsize=(5.4, 1.6), layout="constrained")
    figure.text(0.5, 0.4, f"Releases of {dataset} do not mark turns.", ha="center", fontsize=9)
    add_title(figure, f"{dataset}: lengths of utterances and dialogues", None, frames.metadata)
    return figure


def _draw_panel(axes: Axes, histogram: pd.DataFrame, label: str, noun: str) -> None:
    ordered = histogram.sort_values("length")
    length = ordered["length"].to_numpy(np.int64)
    count = ordered["count"].to_numpy(np.int64)
    total = int(count.sum())
    reached = np.cumsum(count) / total
    last = int(length[np.searchsorted(reached, _SHOWN)])
    step = max(1, -(-(last - int(length[0]) + 1) // _MOST_BARS))
    edges = np.arange(length[0], last + step + 1, step)
    shares, _ = np.histogram(length, edges, weights=100 * count / total)
    axes.bar(
        edges[:-1] - 0.5, shares, step, align="edge", color=ALGORITHM_COLOURS[0], ec="white", lw=0.4
    )
    median = int(length[np.searchsorted(reached, 0.5)])
    mean = float((length * count).sum() / total)
    axes.axvline(median, color=INK, ls="-", lw=1.4)
    axes.axvline(mean, color=INK, ls=":", lw=1.8)
    axes.set_title(
        f"{total:,} {noun}\nmedian {median:,}, mean {mean:,.1f}\n"
        f"{_describe_longest_items(length, count, edges)}",
        fontsize=8,
    )
    axes.set_xlabel(label, fontsize=LABEL_POINTS + 0.5)
    axes.set_ylabel(f"% of {noun}", fontsize=LABEL_POINTS + 0.5)
    despine(axes, zero=None)
    axes.locator_params(axis="x", nbins=6, integer=True)


def _describe_longest_items(length: Any, count: Any, edges: Any) -> str:
    """Describe how many items are longer than the axis, and the maximum length."""
    longer = int(count[length >= edges[-1]].sum())
    if not longer:
        return f"longest {int(length[-1]):,}"
    return f"{longer:,} longer than {int(edges[-1]) - 1:,}, up to {int(length[-1]):,}"
