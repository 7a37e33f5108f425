"""Values with intervals: lines with bands, best fits, and forest plots in panels.

A forest plot has one line per name in all panels. A mark is filled if the effect is
significant, and hollow if it is not. Controls are grey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from tasktransfer.present.kit.panels import (
    MOST_COLUMNS,
    NOTE,
    create_panels,
    make_panel_grid,
    set_panel_title,
)
from tasktransfer.present.kit.paper import is_paper_style
from tasktransfer.present.kit.style import (
    INK,
    LABEL_POINTS,
    Floats,
    Look,
    add_legend_below,
    add_title,
    fit_panels,
)
from tasktransfer.results.store import Metadata
from tasktransfer.stats.best_fit import fit_line


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


GREY = "#767676"
"""Colour of controls."""
LINE = 0.3
"""Height of a line, inches."""
LINE_IN_A_PAPER = 0.2
"""Height of a line in paper style if there are several rows of panels, inches."""
MOST_IN_A_ROW = 6
"""Maximum number of panels in a single row."""
_ROOM = 3
"""Height for title and notes while the figure is measured, inches."""

Lines = Mapping[str, Sequence[Estimate]]
"""Name of a line → its estimates, in the order of their looks."""


def draw_forests(names: Sequence[str], panels: Mapping[str, Lines]) -> tuple[Figure, list[Axes]]:
    """Draw forest plots, and return the figure and its panels.

    There is one panel per title, and a name has the same line in all panels.

    More than ``MOST_IN_A_ROW`` panels are arranged in rows of four. The labels of estimates are to
    the right of their line, if no line has several estimates. They are omitted in paper style,
    which has no room for them.
    ``finish_forests`` then sets the size of the panels.
    """
    columns = len(panels) if len(panels) <= MOST_IN_A_ROW else MOST_COLUMNS
    figure, axes = create_panels(
        len(panels), 2.6, LINE * len(names) + _ROOM, columns=columns, shared="y"
    )
    for panel, (title, lines) in zip(axes, panels.items(), strict=True):
        plot_forest(panel, [lines.get(name, ()) for name in names], names)
        set_panel_title(panel, title)
        if not is_paper_style():
            _write_labels(panel, [lines.get(name, ()) for name in names])
    axes[0].set_ylim(len(names) - 0.1, -0.9)  # room for the names of reference lines
    return figure, axes


def _write_labels(axes: Axes, rows: Sequence[Sequence[Estimate]]) -> None:
    if any(len(row) > 1 for row in rows):
        return
    for y, row in enumerate(rows):
        for estimate in row:
            axes.text(
                1.03, y, estimate.label, transform=axes.get_yaxis_transform(), va="center",
                fontsize=NOTE + 0.5, color=INK,
            )  # fmt: skip


def finish_forests(
    figure: Figure,
    title: str,
    lines: int,
    seeds: int | None,
    metadata: Metadata,
    *,
    entries: Sequence[Any] = (),
    heading: str = "",
    notes: Sequence[str] = (),
) -> None:
    """Add legend, title and notes to forest plots, then fit the figure to its panels.

    Args:
        figure: the figure of ``draw_forests``.
        title: title of the figure.
        lines: number of names.
        seeds: number of seeds; None if the figure does not depend on seeds.
        metadata: metadata of the study.
        entries: entries of the legend; none for one kind of mark.
        heading: title of the legend.
        notes: notes of the caption.
    """
    if entries:
        add_legend_below(figure, entries, heading)
    add_title(figure, title, seeds, metadata, notes)
    width = max(1.9, 5 / len(figure.axes))
    panels = make_panel_grid(figure.axes[0])
    line = LINE_IN_A_PAPER if is_paper_style() and len(panels) > 1 else LINE
    fit_panels(figure, panels, width, line * (lines + 0.8))


def format_best_fit_note(drawn: bool) -> str:
    """Return a note on the lines of ``draw_best_fit``, or on why there are none."""
    if drawn:
        return "Lines are least-squares fits; bands are 95 % intervals (jackknife over tasks)"
    return (
        "No line is shown, because there are too few distinct values or tasks, or because the "
        "interval is wider than the range of the points"
    )


def draw_best_fit(axes: Any, cells: pd.DataFrame, x: str, look: Look) -> bool:
    """Draw the least-squares line of the cells' deltas against the logarithm of a column.

    It has a band for its interval over tasks (``fit_line``). The line is left out with fewer than
    three distinct x, or if the band is wider than the range of all deltas.

    Returns:
        True if a line was drawn.
    """
    logarithm = np.log10(cells[x].to_numpy(np.float64))
    deltas = cells["delta"].to_numpy(np.float64)
    fit = fit_line(logarithm, deltas, list(cells["source"]), list(cells["target"]))
    if fit is None:
        return False
    at = np.linspace(logarithm.min(), logarithm.max(), 60)
    line, low, high = fit.compute_band(at)
    if (high - low).max() > np.ptp(deltas):
        return False
    outline = np.column_stack([[*10**at, *10 ** at[::-1]], [*low, *high[::-1]]])
    band = PolyCollection([outline], facecolor=look.colour, alpha=0.12, lw=0, zorder=3)
    axes.add_collection(band, autolim=False)
    axes.plot(10**at, line, color=look.colour, ls=look.line, lw=1.9, zorder=4)
    return True
