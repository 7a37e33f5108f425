"""What all figures share: colours, marks, number format, title, legend, and how they are saved."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from tasktransfer.files import replacing
from tasktransfer.present.marks import badges, marks_of, notes
from tasktransfer.stats.best_fit import best_fit
from tasktransfer.tables.metadata import Metadata
from tasktransfer.tables.numbers import counted

Floats = np.ndarray[Any, np.dtype[np.float64]]

INK = "#1a1a1a"
NEUTRAL = "#bdbdbd"
"""Grey: far from every colour of the diverging scale, for colour-blind readers too, so that a
baseline is never read as an improvement."""
MISSING: dict[str, Any] = {
    "facecolor": "#d9d9d9",
    "edgecolor": "#808080",
    "hatch": "////",
    "linewidth": 0.0,
}
"""Planned, and without a number."""
NOT_PLANNED: dict[str, Any] = {
    "facecolor": "#fafafa",
    "edgecolor": "#c4c4c4",
    "hatch": "\\\\",
    "linewidth": 0.0,
}
"""No part of the study: paler, and hatched the other way."""
ALGORITHM_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""Okabe and Ito's palette, told apart by colour-blind readers."""
DIVERGING = "RdBu"
"""Diverging and readable by colour-blind readers: red is negative, blue positive transfer."""

DPI = 200
TITLE_POINTS = 11.0
LEGEND_POINTS = 8.5
LABEL_POINTS = 8.5
NOTE_POINTS = 7.5
_HANDLE, _COLUMN_GAP = 2.6, 1.5
"""Width of a legend's handles and of the room between its columns, of the font size."""
_NOTES = "notes"
_MARGIN = 0.1
"""Room around a figure, inches."""
_LETTER = 0.57
"""Mean width of a letter, of the font size."""
_EMBEDDED_FONTS = 42
"""TrueType in PDFs: text stays text, which journals ask for."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a series is told apart: never by colour alone."""

    colour: str
    marker: str
    line: str
    hatch: str | None = None


_MARKERS = ("o", "s", "^", "D", "v", "P")
_LINES = ("-", "--", "-.", ":", "-", "--")
_HATCHES = (None, "...", "xx", "\\\\\\", "++", "OO")


def series_look(rank: int) -> Look:
    """The look of the model or algorithm of this rank (from 0); they repeat after six."""
    index = rank % len(ALGORITHM_COLOURS)
    return Look(ALGORITHM_COLOURS[index], _MARKERS[index], _LINES[index], _HATCHES[index])


def signed(value: float) -> str:
    """A signed number with one decimal (none from 1000 on), a true minus, no negative zero."""
    text = f"{value:+.1f}" if abs(value) < 999.95 else f"{value:+.0f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")


def colour_limit(values: Floats, most: float = np.inf) -> float:
    """The symmetric limit of a diverging scale: the 95th percentile of the absolute values,
    rounded up to 1, 2 or 5 times a power of ten, so that one outlier does not wash out the rest
    (numbers printed in cells are exact, and cells beyond the limit are marked).

    Of up to 20 values the 95th percentile is between the two largest, and an outlier would set the
    limit alone: it is at most twice the largest value that lies below that percentile, or 10 where
    that is less (beside cells of 0, every other would be an outlier). Of two values neither is
    one. No limit is above ``most``.
    """
    sizes = np.abs(values[~np.isnan(values)])
    if not len(sizes):
        return 1.0
    wide = float(np.percentile(sizes, 95))
    if len(sizes) > 2:
        below = float(np.percentile(sizes, 95, method="lower"))
        wide = min(wide, max(2 * below, 10.0))
    if wide <= 1:
        return 1.0
    power = 10.0 ** np.floor(np.log10(wide))
    steps = (step * power for step in (1, 2, 5, 10))
    return min(most, float(next(limit for limit in steps if wide <= limit * 1.0001)))


def improvement_limit(improvements: Floats) -> float:
    """``colour_limit`` of relative improvements, %, at most 100: they end at −100 below and nowhere
    above, and a score that is lost altogether must not look pale beside one that grew tenfold."""
    return colour_limit(improvements, most=100.0)


def beyond(values: Floats, limit: float) -> str:
    """At which ends a colour bar has an arrow: where values go beyond it."""
    above, below = bool((values > limit).any()), bool((values < -limit).any())
    return {(True, True): "both", (True, False): "max", (False, True): "min"}.get(
        (above, below), "neither"
    )


def readable_on(colour: Any) -> str:
    """Black or white, whichever stands out more on a colour (relative luminance of WCAG 2)."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]
    )
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "black" if luminance > 0.179 else "white"


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers for a logarithmic axis from ``low`` to ``high`` (both above zero): 1, 2 and 5
    of each decade, or fewer where that were more than ``most``; the ends where none lies within."""
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [float(f"{s}e{d}") for d in decades for s in steps]
        within = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(within) <= most:
            break
    return within if len(within) > 1 else sorted({low, high})


def log_axis(axes: Any, values: Sequence[float]) -> None:
    """Make the x axis logarithmic, wide enough for the values, with ticks in plain numbers."""
    low, high = min(values), max(values)
    room = max((high / low) ** 0.06, 1.08)
    axes.set_xscale("log")
    axes.set_xlim(low / room, high * room)
    ticks = log_ticks(low, high)
    axes.set_xticks(ticks, [f"{tick:,.0f}" if tick >= 100 else f"{tick:.3g}" for tick in ticks])
    axes.set_xticks([], minor=True)


def bare_axes(axes: Any, zero: float | None = 0.7) -> None:
    """Axes without a frame above and at the right; ``zero``: width of the line at y = 0."""
    if zero is not None:
        axes.axhline(0, color=INK, linewidth=zero, zorder=1)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def line_note(drawn: bool) -> str:
    """How to read the lines of ``draw_best_fit``, or why there are none."""
    if drawn:
        return (
            "Lines: least squares; bands: 95 % interval, "
            "tasks resampled whole, each left out in turn"
        )
    return "No line: fewer than three distinct values, or too few tasks to tell its interval"


def draw_best_fit(axes: Any, cells: pd.DataFrame, x: str, look: Look) -> bool:
    """The least-squares line of the cells' deltas on the logarithm of a column, with its interval
    over tasks (``best_fit``); nothing with fewer than three distinct x. A band of few tasks may be
    many times as high as the deltas: it does not widen the axis. Tells whether a line was drawn."""
    logarithm = np.log10(cells[x].to_numpy(np.float64))
    deltas = cells["delta"].to_numpy(np.float64)
    fit = best_fit(logarithm, deltas, list(cells["source"]), list(cells["target"]))
    if fit is None:
        return False
    at = np.linspace(logarithm.min(), logarithm.max(), 60)
    line, low, high = fit.band(at)
    outline = np.column_stack([[*10**at, *10 ** at[::-1]], [*low, *high[::-1]]])
    band = PolyCollection([outline], facecolor=look.colour, alpha=0.12, lw=0, zorder=3)
    axes.add_collection(band, autolim=False)
    axes.plot(10**at, line, color=look.colour, ls=look.line, lw=1.9, zorder=4)
    return True


def heading(what: str, seeds: int | None, metadata: Metadata) -> list[str]:
    """The lines of a figure's title: what it shows, of which study, and the study's badges.

    ``seeds``: how many are behind it; None where seeds play no part.
    """
    study = f"study {metadata.study}"
    if seeds is not None:
        study += f", {counted(seeds, 'seed')}"
    marks = badges(marks_of(metadata))
    return [what, " · ".join(part for part in (study, marks) if part)]


def wrapped(lines: list[str], figure: Figure, points: float) -> str:
    """Break lines that are wider than the figure; a letter is taken as 0.57 of the font size."""
    letters = max(20, int(figure.get_figwidth() * 72 / (_LETTER * points)))
    parts = (textwrap.wrap(line, letters, break_on_hyphens=False) for line in lines)
    return "\n".join(part for wrapped_line in parts for part in wrapped_line)


def folded(name: str, inches: float, points: float) -> str:
    """Break a name that is longer than its place: at spaces, or after - / _ where it has none."""
    letters = max(8, int(inches * 72 / (_LETTER * points)))
    parts = re.findall(r"\S+\s*" if " " in name else r"[^-/_]+[-/_]*|[-/_]+", name)
    short = [part[i : i + letters] for part in parts for i in range(0, len(part), letters)]
    lines = [""]
    for part in short:
        if len(lines[-1]) + len(part.rstrip()) > letters:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines if line)


def entitle(
    figure: Figure, what: str, seeds: int | None, metadata: Metadata, more: Sequence[str] = ()
) -> None:
    """Put the heading above the figure, and below it the notes that its badges stand for and
    ``more`` of them."""
    points = TITLE_POINTS * growth(figure)
    figure.suptitle(wrapped(heading(what, seeds, metadata), figure, points), fontsize=points)
    footnotes(figure, notes(marks_of(metadata), more))


def footnotes(figure: Figure, texts: Sequence[str]) -> None:
    """Small lines below everything, a legend too: ``save`` knows where that ends."""
    if texts:
        points = NOTE_POINTS * growth(figure)
        note = figure.text(0, 0, wrapped([*texts], figure, points), fontsize=points, va="top")
        note.set_gid(_NOTES)
        note.set_in_layout(False)


def lay_out(figure: Figure) -> None:
    """Put everything of a figure where it is saved: panels, legend, and the notes below all."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)  # once: each file would do it again, and measure all texts for it
        figure.set_layout_engine("none")
    for legend in figure.legends:  # else it moves to the edge of what is saved, over the notes
        legend.set_bbox_to_anchor((0, 0, 1, 1), figure.transFigure)
    box, (wide, high) = figure.get_tightbbox(), figure.get_size_inches()
    for note in figure.texts:
        if note.get_gid() == _NOTES:
            note.set_position((box.x0 / wide, (box.y0 - _MARGIN) / high))
            note.set_in_layout(True)


def growth(figure: Figure) -> float:
    """How much larger titles and legends are on a figure that print makes smaller."""
    return float(np.clip(figure.get_figwidth() / 9, 1.0, 1.6))


def fit_panels(figure: Figure, panels: Any, width: float, height: float) -> None:
    """Make the figure as large as its panels need to be of that size (inches) beside their names,
    titles and legend.

    Unlike an equal aspect, which cuts panels after the layout has put titles where they ended.
    Heading and legend are there already; the figure gets no narrower than these, and panels wider.
    ``panels``: array (rows, columns) of axes.
    """
    engine = figure.get_layout_engine()
    if engine is None:
        return
    engine.execute(figure)
    rows, columns = panels.shape
    box, (wide, high) = panels[0, 0].get_position(), figure.get_size_inches()
    words: list[Any] = [
        text for text in figure.texts if text.get_in_layout()
    ]  # the heading is one of them
    words += figure.legends
    needed = max(artist.get_window_extent().width for artist in words) / figure.dpi + 0.2
    figure.set_size_inches(
        max(needed, wide + columns * (width - box.width * wide)),
        high + rows * (height - box.height * high),
    )


def legend_below(figure: Figure, entries: Sequence[Any], note: str = "") -> None:
    """A legend below the panels, in as many columns as fit, under a note on how to read it."""
    points = LEGEND_POINTS * growth(figure)
    figure.legend(
        handles=list(entries),
        loc="outside lower center",
        ncols=_columns_that_fit(figure, [str(entry.get_label()) for entry in entries], points),
        frameon=False,
        fontsize=points,
        title=wrapped([note], figure, points) if note else None,
        title_fontsize=points,
        handlelength=_HANDLE,
        columnspacing=_COLUMN_GAP,
    )


def _columns_that_fit(figure: Figure, labels: Sequence[str], points: float) -> int:
    """As many columns as the figure is wide enough for, and no lone entry in a last row where one
    column less does without."""
    em = points / 72
    besides = (_HANDLE + 0.8 + _COLUMN_GAP) * em  # 0.8: between a handle and its text
    for columns in range(len(labels), 1, -1):
        parts = np.array_split([len(label) for label in labels], columns)  # as the legend does
        width = sum(int(part.max()) * _LETTER * em + besides for part in parts)
        if width <= figure.get_figwidth() - 0.2:
            rows = -(-len(labels) // columns)
            return -(-len(labels) // rows)
    return 1


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write ``name``.png (200 dpi) and ``name``.pdf, atomically and without a date, so that the
    same tables give the same files. Room around the figure is cut, or added where it needs more."""
    lay_out(figure)
    box = figure.get_tightbbox().padded(_MARGIN)
    paths = []
    with mpl.rc_context({"pdf.fonttype": _EMBEDDED_FONTS}):
        for kind, metadata in (("png", {"Software": None}), ("pdf", {"CreationDate": None})):
            path = folder / f"{name}.{kind}"
            with replacing(path) as part:
                figure.savefig(part, format=kind, dpi=DPI, bbox_inches=box, metadata=dict(metadata))
            paths.append(path)
    return paths
