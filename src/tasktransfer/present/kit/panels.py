"""Panels of small multiples with shared axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasktransfer.present.kit.paper import count_columns
from tasktransfer.present.kit.style import INK, LABEL_POINTS, Look, despine, fit_panels

MOST_COLUMNS = 4
ROOM = 4.0
"""Height that is reserved for notes while a figure is measured, inches."""
LEAST_WIDTH = 5.5
"""Minimum width of a figure with heading and notes, inches."""


def create_panels(
    count: int,
    width: float,
    height: float,
    *,
    columns: int = MOST_COLUMNS,
    shared: str = "both",
    group: int = 1,
) -> tuple[Figure, list[Axes]]:
    """Create a figure with ``count`` panels of equal size.

    Args:
        count: number of panels.
        width: width of a panel, inches.
        height: height of a panel, inches.
        columns: maximum number of columns.
        shared: axes that all panels share: x, y, both or none.
        group: number of panels that belong together and stay in one row.
    """
    columns = math.ceil(count_columns(count, width, columns, height) / group) * group
    rows = max(1, math.ceil(count / columns))
    figure = Figure(
        figsize=(max(LEAST_WIDTH, width * columns + 0.6), height * rows + 1.2), layout="constrained"
    )
    axes = figure.subplots(
        rows, columns, squeeze=False, sharex=shared in ("x", "both"), sharey=shared in ("y", "both")
    )
    flat = list(axes.flat)
    for spare in flat[count:]:
        spare.remove()
    for index, panel in enumerate(flat[:count]):
        despine(panel, zero=None)
        if index + columns >= count:  # the lowest of its column
            panel.tick_params(labelbottom=True)
    return figure, flat[:count]


def fit_figure_to_panels(
    figure: Figure, axes: Sequence[Axes], width: float, height: float, *, cells: bool = False
) -> None:
    """Resize a figure until its panels have a given width and height in inches.

    Call it last on a figure of ``create_panels``, when heading and notes exist. ``cells`` is as for
    ``fit_panels``.
    """
    wide, high = figure.get_size_inches()
    figure.set_size_inches(wide, high + ROOM)  # long notes would leave panels of no height
    fit_panels(figure, make_panel_grid(axes[0]), width, height, cells=cells)


def make_panel_grid(axes: Axes) -> Any:
    """Return an array in the shape of the grid that contains a panel, filled with the panel."""
    grid = axes.get_gridspec()
    shape = (1, 1) if grid is None else grid.get_geometry()
    return np.full(shape, axes, dtype=object)


def is_in_first_column(axes: Axes) -> bool:
    """Return whether a panel is in the first column of its grid."""
    place = axes.get_subplotspec()
    return place is None or place.is_first_col()


def set_panel_title(axes: Axes, text: str) -> None:
    """Set a panel's title."""
    axes.set_title(text, fontsize=LABEL_POINTS, loc="left")


def draw_reference_line(
    axes: Axes, value: float, label: str, *, style: str = "--", below: bool = False
) -> None:
    """Draw a horizontal line for a prior or control, and write its name at the right end.

    Args:
        axes: the panel.
        value: position of the line on the y axis.
        label: name of the line.
        style: line style of matplotlib.
        below: whether the name is below the line instead of above it.
    """
    axes.axhline(value, color=INK, linewidth=0.8, linestyle=style, alpha=0.7, zorder=1)
    axes.annotate(
        label,
        (1.0, value),
        xycoords=("axes fraction", "data"),
        xytext=(-2, -2 if below else 2),
        textcoords="offset points",
        ha="right",
        va="top" if below else "bottom",
        fontsize=NOTE,
        color=INK,
    )


def draw_vertical_line(
    axes: Axes, value: float, label: str, *, style: str = "--", below: bool = False
) -> None:
    """Draw a vertical reference line, and write its name at the upper or lower end.

    The name is on the side that has more room.
    """
    axes.axvline(value, color=INK, linewidth=0.8, linestyle=style, alpha=0.7, zorder=1)
    low, high = axes.get_xlim()
    left = value > (low + high) / 2
    axes.annotate(
        label,
        (value, 0.0 if below else 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-2 if left else 2, 2 if below else -2),
        textcoords="offset points",
        ha="right" if left else "left",
        va="bottom" if below else "top",
        fontsize=NOTE,
        color=INK,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
    )


NOTE = 6.5
"""Font size of labels within panels, points."""


def label_line_ends(
    axes: Axes, ends: Sequence[tuple[float, float, str, Look]], height: float
) -> None:
    """Write the names of series next to their last points, without overlaps.

    Call it after the limits of y are set.

    Args:
        axes: the panel.
        ends: x, y, name and look of each series.
        height: height of the panel, inches.
    """
    low, high = axes.get_ylim()
    points = 72 * height / (high - low)
    least = 1.3 * (NOTE + 0.5)
    reached = -math.inf
    for x, y, text, look in sorted(ends, key=lambda end: end[1]):
        reached = max(y * points, reached + least)
        axes.annotate(
            text,
            (x, y),
            xytext=(4, reached - y * points),
            textcoords="offset points",
            va="center",
            fontsize=NOTE + 0.5,
            color=look.colour,
        )


def make_line_entry(label: str, look: Look, **style: Any) -> Any:
    """Return a legend entry for a series, with ``style`` overriding its look."""
    from matplotlib.lines import Line2D  # noqa: PLC0415

    shown = {"color": look.colour, "marker": look.marker, "linestyle": look.line, "markersize": 5}
    return Line2D([], [], label=label, **{**shown, **style})
