"""Cells of source × target matrices: filled, hatched, framed, and with their numbers.

All cells of a kind are one collection: drawing a patch for each takes several times as long.
A cell is named by its left and upper corner in axis units; it is 1 wide and 1 high.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from tasktransfer.analysis.style import INK, MISSING

Corner = tuple[float, float]
MISSING_LABEL = "missing or not in the study"
SURVIVES_LABEL = "differs from 0 after false-discovery control (q ≤ 0.05)"
FRAME: dict[str, Any] = {"facecolor": "none", "edgecolor": INK, "linewidth": 1.3}
_INSET = 0.05


def fill(axes: Axes, corners: Sequence[Corner], colours: Sequence[Any]) -> None:
    """Cells of those colours, parted by thin white lines."""
    _add(axes, corners, 0.0, "cells", facecolor=list(colours), edgecolor="white", linewidth=0.8)


def hatch(axes: Axes, corners: Sequence[Corner]) -> None:
    """Cells where there is nothing."""
    _add(axes, corners, 0.0, "missing", **MISSING)


def frame(axes: Axes, corners: Sequence[Corner]) -> None:
    """A bold frame inside cells that survive false-discovery control."""
    _add(axes, corners, _INSET, "significant", **FRAME)


def write(
    axes: Axes, corner: Corner, text: str, size: float, colour: str, *, down: float = 0.5, **kw: Any
) -> None:
    """Text in a cell; ``down``: how far below the upper edge its middle is."""
    x, y = corner
    text_of_cell = axes.text(
        x + 0.5, y + down, text, ha="center", va="center", fontsize=size, color=colour, **kw
    )
    text_of_cell.set_in_layout(False)  # it lies inside the axes: not measuring it halves the time


def _add(axes: Axes, corners: Sequence[Corner], inset: float, label: str, **style: Any) -> None:
    if not corners:
        return
    near, far = inset, 1 - inset
    squares = [
        [(x + near, y + near), (x + far, y + near), (x + far, y + far), (x + near, y + far)]
        for x, y in corners
    ]
    cells = PolyCollection(squares, label=label, **style)
    cells.set_in_layout(False)
    axes.add_collection(cells, autolim=False)
