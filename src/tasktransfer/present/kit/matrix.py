"""Cells of source × target matrices: fills, hatches, frames, marks and numbers.

All cells of a kind are one collection, because one patch per cell takes several times as long. A
cell is identified by its upper left corner in axis units; it is 1 wide and 1 high.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tasktransfer.present.kit.paper import CELL, is_paper_style
from tasktransfer.present.kit.style import INK, MISSING, NOT_PLANNED, PatchStyle

Corner = tuple[float, float]
MISSING_LABEL = "missing"
NOT_PLANNED_LABEL = "not in the study"
SURVIVES_LABEL = "differs from 0 after false-discovery control (q ≤ 0.05)"
ONE_TRAINING_LABEL = "only one training run, other seeds unknown"
FRAME: PatchStyle = {"facecolor": "none", "edgecolor": INK, "linewidth": 1.3}
HATCHED_LIGHTLY: PatchStyle = {
    "facecolor": "none",
    "edgecolor": "#70707090",
    "hatch": "|||",
    "linewidth": 0.0,
}
DOTTED: PatchStyle = {**HATCHED_LIGHTLY, "hatch": "...."}
GREY = "#909090"
"""Colour of hatchings in paper style."""
_INSET = 0.05
_WHOLE = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
_TIP = np.array([(0.76, 0.03), (0.97, 0.03), (0.97, 0.24)])
"""Mark of a cell beyond the colours, in its upper right corner."""
_TURN = np.linspace(0, 2 * np.pi, 17)[:-1]
_RING = np.stack([0.19 + 0.08 * np.cos(_TURN), 0.19 + 0.08 * np.sin(_TURN)], axis=1)
"""Mark of a cell of one training: a ring in its upper left corner."""


class FontStyle(TypedDict, total=False):
    """Font of a cell's text, in Matplotlib's names."""

    weight: str
    style: Literal["normal", "italic", "oblique"]


def fill_cells(axes: Axes, corners: Sequence[Corner], colours: Sequence[Any]) -> None:
    """Fill cells with colours, separated by thin white lines."""
    _add_shapes(
        axes, corners, _WHOLE, "cells", facecolor=list(colours), edgecolor="white", linewidth=0.8
    )


def hatch_missing_cells(axes: Axes, corners: Sequence[Corner]) -> None:
    """Hatch cells whose runs are planned but have no result."""
    _add_shapes(axes, corners, _WHOLE, "missing", **MISSING)


def hatch_unplanned_cells(axes: Axes, corners: Sequence[Corner]) -> None:
    """Hatch cells that are not in the study."""
    _add_shapes(axes, corners, _WHOLE, "not planned", **NOT_PLANNED)


def hatch_cells_lightly(axes: Axes, corners: Sequence[Corner]) -> None:
    """Draw thin vertical lines over cells whose number is not final."""
    _add_shapes(axes, corners, _WHOLE, "hatched lightly", **HATCHED_LIGHTLY)


def make_light_hatch_entry(label: str) -> Patch:
    """Return a legend entry for cells whose number is not final."""
    return Patch(**HATCHED_LIGHTLY, label=label)


def draw_dots_over_cells(axes: Axes, corners: Sequence[Corner]) -> None:
    """Draw dots over cells, keeping their colour and number visible."""
    _add_shapes(axes, corners, _WHOLE, "dotted", **DOTTED)


def make_dots_entry(label: str) -> Patch | Line2D:
    """Return a legend entry for dotted cells."""
    if is_paper_style():
        return Line2D([], [], ls=":", lw=1.2, color=GREY, label=label)
    return Patch(**DOTTED, label=label)


def frame_significant_cells(axes: Axes, corners: Sequence[Corner]) -> None:
    """Draw a bold frame inside cells that are significant after false-discovery control."""
    _add_frames(axes, corners, "significant", FRAME)


def mark_single_seed_cells(axes: Axes, corners: Sequence[Corner], inks: Sequence[str]) -> None:
    """Draw a small ring in cells with a single seed, in their text colour."""
    edges = list(inks)
    _add_shapes(
        axes, corners, _RING, "one training", facecolor="none", edgecolor=edges, linewidth=0.7
    )


def make_single_seed_entry() -> Line2D:
    """Return a legend entry for cells with a single seed."""
    return Line2D([], [], ls="", marker="o", mfc="none", mec=INK, ms=5, label=ONE_TRAINING_LABEL)


def mark_clipped_cells(axes: Axes, corners: Sequence[Corner], inks: Sequence[str]) -> None:
    """Draw a filled corner in cells whose number exceeds the limits of the colour scale."""
    _add_shapes(axes, corners, _TIP, "beyond", facecolor=list(inks), edgecolor="none")


def make_clipped_entry(limit: float, unit: str) -> Line2D:
    """Return a legend entry for cells whose number exceeds the limits of the colour scale."""
    label = f"beyond the colours (±{limit:g}{unit})"
    corner = [(-1, 1), (1, 1), (1, -1)]
    return Line2D([], [], ls="", marker=corner, color=INK, ms=5, label=label)


def make_hatch_entries(*, missing: bool, not_planned: bool) -> list[Patch]:
    """Return legend entries for the kinds of hatched cells that a figure has."""
    return [
        *([Patch(**MISSING, label=MISSING_LABEL)] if missing else []),
        *([Patch(**NOT_PLANNED, label=NOT_PLANNED_LABEL)] if not_planned else []),
    ]


def write_cell_text(
    axes: Axes,
    corner: Corner,
    text: str,
    size: float,
    colour: str,
    *,
    down: float = 0.5,
    **font: Unpack[FontStyle],
) -> None:
    """Write a text in a cell, ``down`` cell heights below its upper edge."""
    x, y = corner
    text_of_cell = axes.text(
        x + 0.5, y + down, text, gid=CELL, ha="center", va="center", fontsize=size, color=colour,
        **font,
    )  # fmt: skip
    text_of_cell.set_in_layout(False)  # it lies inside the axes: not measuring it halves the time


def _add_frames(axes: Axes, corners: Sequence[Corner], label: str, look: PatchStyle) -> None:
    """Add frames on top of white lines, so that they are visible on dark cells."""
    inside = _INSET + (1 - 2 * _INSET) * _WHOLE
    _add_shapes(axes, corners, inside, "halo", facecolor="none", edgecolor="white", linewidth=2.4)
    _add_shapes(axes, corners, inside, label, **look)


def _plot_hatch_lines(axes: Axes, corners: Sequence[Corner], hatch: str) -> None:
    """Draw a hatching as one line over all cells, which keeps PGF files small."""
    at = np.array([1, 3, 5]) / 6
    if hatch[0] == ".":
        points = np.array([(x, y) for x in at for y in at])
        x, y = np.concatenate([points + corner for corner in corners]).T
        axes.plot(x, y, ls="", marker=".", ms=1.3, color=GREY, mew=0, in_layout=False)
        return
    ends = {"/": ((-1 / 3, 1), (1 / 3, 0)), "\\": ((1 / 3, 1), (-1 / 3, 0)), "|": ((0, 0), (0, 1))}
    (from_x, from_y), (to_x, to_y) = ends[hatch[0]]
    lines = [
        (corner[0] + middle + dx, corner[1] + dy) if dx is not None else (np.nan, np.nan)
        for corner in corners
        for middle in (at if hatch[0] == "|" else (0.5,))
        for dx, dy in ((from_x, from_y), (to_x, to_y), (None, 0))
    ]
    axes.plot(*np.array(lines).T, color=GREY, lw=0.5, in_layout=False)


def _add_shapes(
    axes: Axes, corners: Sequence[Corner], shape: Any, label: str, **style: Any
) -> None:
    """Add a shape to each cell, with points in fractions of the cell's size."""
    if not corners:
        return
    if is_paper_style() and "hatch" in style:
        _plot_hatch_lines(axes, corners, style.pop("hatch"))
    cells = PolyCollection([shape + corner for corner in corners], label=label, **style)
    cells.set_in_layout(False)
    axes.add_collection(cells, autolim=False)
