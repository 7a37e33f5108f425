"""Forest plots in panels: effects with intervals, one line per name in all panels.

A mark is filled if the effect is significant, and hollow if it is not. Controls are grey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasktransfer.present.kit.panels import (
    MOST_COLUMNS,
    NOTE,
    create_panels,
    make_panel_grid,
    set_panel_title,
)
from tasktransfer.present.kit.paper import is_paper_style
from tasktransfer.present.kit.series import Estimate, plot_forest
from tasktransfer.present.kit.style import INK, add_legend_below, add_title, fit_panels
from tasktransfer.results.metadata import Metadata

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
