"""Values with intervals: lines with bands, and forest plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from tasktransfer.present.kit.panels import NOTE
from tasktransfer.present.kit.style import INK, LABEL_POINTS, Floats, Look


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval (NaN if unknown), in the unit of its axis."""

    label: str
    value: float
    low: float
    high: float
    look: Look
    hollow: bool = False
    """True for one training, or if the value does not differ significantly from the reference."""


def plot_line_with_band(
    axes: Axes,
    x: Sequence[float] | Floats,
    value: Sequence[float] | Floats,
    look: Look,
    *,
    low: Sequence[float] | Floats | None = None,
    high: Sequence[float] | Floats | None = None,
    label: str | None = None,
) -> None:
    """Plot a series along x with a band for its intervals or its range over seeds."""
    axes.plot(
        x, value, label=label, color=look.colour, marker=look.marker, linestyle=look.line,
        markersize=3.5, linewidth=1.3,
    )  # fmt: skip
    if low is not None and high is not None:
        axes.fill_between(x, low, high, color=look.colour, alpha=0.14, linewidth=0)


def plot_forest(axes: Axes, rows: Sequence[Sequence[Estimate]], names: Sequence[str]) -> None:
    """Plot named groups of estimates from top to bottom.

    Args:
        axes: the panel.
        rows: the estimates of each group, in the order of their looks.
        names: names of the groups.
    """
    for index, group in enumerate(rows):
        for rank, estimate in enumerate(group):
            y = index + (rank - (len(group) - 1) / 2) * 0.7 / max(1, len(group))
            face = "white" if estimate.hollow else estimate.look.colour
            if not np.isnan([estimate.low, estimate.high]).any():
                ends = (estimate.low, estimate.high)
                axes.plot(ends, (y, y), color=estimate.look.colour, linewidth=1.1, zorder=2)
            axes.plot(
                estimate.value,
                y,
                marker=estimate.look.marker,
                color=estimate.look.colour,
                markerfacecolor=face,
                markersize=5,
                linestyle="none",
                zorder=3,
            )
        if index % 2:
            axes.axhspan(index - 0.5, index + 0.5, color=INK, alpha=0.04, linewidth=0, zorder=0)
    axes.set_yticks(range(len(names)), names, fontsize=LABEL_POINTS)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)


def draw_zero_line(axes: Axes, label: str = "") -> None:
    """Draw the reference line at a difference of 0, with its name above the panel."""
    axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
    if label:
        axes.annotate(
            label, (0, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 2),
            textcoords="offset points", ha="center", va="bottom", fontsize=NOTE,
        )  # fmt: skip
