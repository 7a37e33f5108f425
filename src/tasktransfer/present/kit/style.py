"""Common style of all figures: colours, marks, number format, title, legend, and saving."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from tasktransfer.errors import format_quantity
from tasktransfer.files import replace_file
from tasktransfer.present.kit import paper
from tasktransfer.present.kit.paper import MARKS, NOTES, TITLE, add_to_caption, read_caption
from tasktransfer.present.marks import list_marks
from tasktransfer.results.store import Metadata

Floats = np.ndarray[Any, np.dtype[np.float64]]

INK = "#1a1a1a"
NEUTRAL = "#bdbdbd"
"""Grey of baselines, far from every colour of the diverging scale, for colour-blind readers too."""


class PatchStyle(TypedDict):
    """Style of a filled shape, in Matplotlib's names. Lines are in points."""

    facecolor: str
    edgecolor: str
    linewidth: float
    hatch: NotRequired[str | None]


MISSING: PatchStyle = {
    "facecolor": "#d9d9d9",
    "edgecolor": "#808080",
    "hatch": "////",
    "linewidth": 0.0,
}
"""Style of planned cells without a number."""
NOT_PLANNED: PatchStyle = {
    "facecolor": "#fafafa",
    "edgecolor": "#c4c4c4",
    "hatch": "\\\\",
    "linewidth": 0.0,
}
"""Style of cells that are not in the study: paler, and hatched the other way."""
ALGORITHM_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""Okabe and Ito's palette, which colour-blind readers can distinguish."""
DIVERGING = "RdBu"
"""Diverging and readable by colour-blind readers: red is negative, blue positive transfer."""

DPI = 200
TITLE_POINTS = 11.0
LEGEND_POINTS = 8.5
LABEL_POINTS = 8.5
NOTE_POINTS = 7.5
_HANDLE, _COLUMN_GAP = 2.6, 1.5
"""Width of a legend's handles and of the gap between its columns, as multiples of the font size."""
_MARGIN = 0.1
"""Margin around a figure, inches."""
_LETTER, _SERIF_LETTER = 0.57, 0.48
"""Mean width of a letter, as a fraction of the font size."""
EMBEDDED_FONTS = 42
"""TrueType fonts in PDFs, so that text stays text, as journals require."""


@dataclass(frozen=True, slots=True)
class Look:
    """Look of a series, which never differs from others by colour alone."""

    colour: str
    marker: str
    line: str
    hatch: str | None = None


_MARKERS = ("o", "s", "^", "D", "v", "P")
_LINES = ("-", "--", "-.", ":", "-", "--")
_HATCHES = (None, "...", "xx", "\\\\\\", "++", "OO")


def get_series_look(rank: int) -> Look:
    """Return the look (colour, marker, line) of the series with an index from 0.

    Looks repeat after six series.
    """
    index = rank % len(ALGORITHM_COLOURS)
    return Look(ALGORITHM_COLOURS[index], _MARKERS[index], _LINES[index], _HATCHES[index])


def format_signed(value: float) -> str:
    """Format a number with its sign and one decimal (none from 1000).

    There is no negative zero.
    """
    text = f"{value:+.1f}" if abs(value) < 999.95 else f"{value:+.0f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")


def compute_colour_limit(values: Floats, most: float = np.inf) -> float:
    """Compute the symmetric limit of a diverging colour scale.

    It is the 95th percentile of the absolute values, rounded up to 1, 2 or 5 times a power of ten,
    so that one outlier does not make all other cells pale. (Numbers in cells are exact, and cells
    beyond the limit are marked.)

    For up to 20 values the 95th percentile is between the two largest, so an outlier would set the
    limit. The limit is therefore at most twice the largest value below that percentile, but not
    below 10 for this reason (next to cells of 0, every other value would be an outlier). Two values
    have no outlier. The limit is never above ``most``.
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


def compute_improvement_limit(improvements: Floats) -> float:
    """Compute the colour limit for relative improvements in percent, at most 100.

    Improvements are bounded by −100 below and unbounded above. A score that is lost completely must
    not look pale next to one that grew tenfold.
    """
    return compute_colour_limit(improvements, most=100.0)


def find_exceeded_ends(values: Floats, limit: float) -> str:
    """Return the ends of the colour scale that values exceed, for arrows at the colour bar."""
    above, below = bool((values > limit).any()), bool((values < -limit).any())
    return {(True, True): "both", (True, False): "max", (False, True): "min"}.get(
        (above, below), "neither"
    )


def choose_text_colour(colour: Any) -> str:
    """Choose black or white, whichever contrasts more with a colour (WCAG 2)."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]
    )
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "black" if luminance > 0.179 else "white"


def choose_log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Choose round numbers as ticks of a logarithmic axis from ``low`` to ``high``.

    They are 1, 2 and 5 of each decade, or fewer if there were more than ``most``. If fewer than two
    lie within the axis, its ends are returned.
    """
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [float(f"{s}e{d}") for d in decades for s in steps]
        within = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(within) <= most:
            break
    return within if len(within) > 1 else sorted({low, high})


def set_log_x_axis(axes: Any, values: Sequence[float]) -> None:
    """Make the x axis logarithmic, fit its limits to the values, and format ticks as numbers."""
    low, high = min(values), max(values)
    room = max((high / low) ** 0.06, 1.08)
    axes.set_xscale("log")
    axes.set_xlim(low / room, high * room)
    ticks = choose_log_ticks(low, high)
    axes.set_xticks(ticks, [f"{tick:,.0f}" if tick >= 100 else f"{tick:.3g}" for tick in ticks])
    axes.set_xticks([], minor=True)


def despine(axes: Any, zero: float | None = 0.7) -> None:
    """Remove the upper and right spines of axes, and draw a line at y = 0.

    Args:
        axes: the axes.
        zero: width of the line, points; None for no line.
    """
    if zero is not None:
        axes.axhline(0, color=INK, linewidth=zero, zorder=1)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def format_heading(what: str, seeds: int | None, metadata: Metadata) -> list[str]:
    """Format a figure's title in two lines: its content, and the study with badges.

    ``seeds`` is the number of seeds, or None if the figure does not depend on seeds.
    """
    badges = [mark.badge for mark in list_marks(metadata)]
    return [what, " · ".join([_format_study(seeds, metadata), *badges])]


def _format_study(seeds: int | None, metadata: Metadata) -> str:
    study = f"study {metadata.study}"
    return study if seeds is None else f"{study}, {format_quantity(seeds, 'seed')}"


def _get_letter_width() -> float:
    return _SERIF_LETTER if paper.is_paper_style() else _LETTER


def wrap_lines(lines: list[str], figure: Figure, points: float) -> str:
    """Break lines that are probably wider than the figure."""
    letters = max(20, int(paper.get_final_width(figure) * 72 / (_get_letter_width() * points)))
    parts = (textwrap.wrap(line, letters, break_on_hyphens=False) for line in lines)
    return "\n".join(part for wrapped_line in parts for part in wrapped_line)


def escape_dollar_signs(text: str) -> str:
    """Escape the dollar signs in a text, which matplotlib would read as a formula."""
    return text.replace("$", "\\$")


def fold_name(name: str, inches: float, points: float) -> str:
    """Break a long name at spaces, or otherwise after - / _."""
    letters = max(8, int(inches * 72 / (_LETTER * points)))
    parts = re.findall(r"\S+\s*" if " " in name else r"[^-/_]+[-/_]*|[-/_]+", name)
    short = [part[i : i + letters] for part in parts for i in range(0, len(part), letters)]
    lines = [""]
    for part in short:
        if len(lines[-1]) + len(part.rstrip()) > letters:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines if line)


def add_title(
    figure: Figure, what: str, seeds: int | None, metadata: Metadata, more: Sequence[str] = ()
) -> None:
    """Add a heading above the figure, and notes and ``more`` to its caption.

    In paper style, the heading is part of the caption too.
    """
    add_heading(figure, format_heading(what, seeds, metadata))
    add_to_caption(figure, TITLE, [f"{what} ({_format_study(seeds, metadata)})."])
    add_to_caption(figure, MARKS, [mark.note for mark in list_marks(metadata)])
    add_to_caption(figure, NOTES, more)


def add_heading(figure: Figure, lines: list[str]) -> None:
    """Add lines above the figure, except in paper style."""
    if not paper.is_paper_style():
        points = TITLE_POINTS * compute_font_scale(figure)
        figure.suptitle(wrap_lines(lines, figure, points), fontsize=points)


def fix_layout(figure: Figure) -> None:
    """Compute the final positions of panels and legend once, before the figure is saved."""
    if paper.is_paper_style():
        height = (
            figure.get_figheight()
            if figure.get_figwidth() == paper.get_final_width(figure)
            else None
        )
        paper.set_paper_size(figure, height)
        paper.fit_to_width(figure)
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)  # once, instead of once per file, because measuring texts is slow
        figure.set_layout_engine("none")


def compute_font_scale(figure: Figure) -> float:
    """Return the factor by which fonts of titles and legends grow on wide figures."""
    return float(np.clip(paper.get_final_width(figure) / 9, 1.0, 1.6))


def fit_panels(
    figure: Figure, panels: Any, width: float, height: float, *, cells: bool = False
) -> None:
    """Resize the figure so that its panels have a size (inches), with space for labels.

    An equal aspect would shrink panels after the layout has placed their titles. Heading and legend
    must exist already. The figure is at least as wide as these, so panels may become wider. In
    paper style, the width of the page sets the panels' width.

    Args:
        figure: the figure.
        panels: array (rows, columns) of axes.
        width: width of a panel, inches.
        height: height of a panel, inches.
        cells: whether the panels become flatter if they become narrower.
    """
    engine = figure.get_layout_engine()
    if engine is None:
        return
    if paper.is_paper_style():
        paper.set_paper_size(figure)
    engine.execute(figure)
    columns = panels.shape[1]
    ratios = panels[0, 0].get_gridspec().get_height_ratios()
    rows = sum(ratios) / ratios[0]  # lower rows may have another height
    box, (wide, high) = panels[0, 0].get_position(), figure.get_size_inches()
    rest = high - rows * box.height * high
    if paper.is_paper_style():
        if cells:
            height = paper.compute_paper_height(width, height, box.width * wide, rows, rest)
        figure.set_size_inches(wide, rest + rows * height)
        return
    words: list[Any] = [
        text for text in figure.texts if text.get_in_layout()
    ]  # the heading is one of them
    words += figure.legends
    needed = max(artist.get_window_extent().width for artist in words) / figure.dpi + 0.2
    figure.set_size_inches(
        max(needed, wide + columns * (width - box.width * wide)), rest + rows * height
    )


def add_legend_below(figure: Figure, entries: Sequence[Any], note: str = "") -> None:
    """Add a legend below the panels, with a note as its title."""
    if not entries and not note:
        return
    points = LEGEND_POINTS * compute_font_scale(figure)
    labels = [wrap_lines([str(entry.get_label())], figure, 1.15 * points) for entry in entries]
    figure.legend(
        handles=list(entries),
        labels=labels,
        loc="outside lower center",
        ncols=_count_columns(figure, labels, points),
        frameon=False,
        fontsize=points,
        title=wrap_lines([note], figure, points) if note else None,
        title_fontsize=points,
        handlelength=_HANDLE,
        columnspacing=_COLUMN_GAP,
    )


def _count_columns(figure: Figure, labels: Sequence[str], points: float) -> int:
    """Return the number of legend columns that fit the figure, with balanced rows."""
    em = points / 72
    besides = (_HANDLE + 0.8 + _COLUMN_GAP) * em  # 0.8: between a handle and its text
    for columns in range(len(labels), 1, -1):
        parts = np.array_split([len(label) for label in labels], columns)  # as the legend does
        width = sum(int(part.max()) * _get_letter_width() * em + besides for part in parts)
        if width <= paper.get_final_width(figure) - 0.2:
            rows = -(-len(labels) // columns)
            return -(-len(labels) // rows)
    return 1


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write the figure as PNG (200 dpi) and PDF, atomically and cropped to its content.

    They contain the caption's title, notes (``Description``) and marks (``Warning``). They contain
    no date, so that identical tables give identical files.
    """
    fix_layout(figure)
    box, caption = figure.get_tightbbox().padded(_MARGIN), read_caption(figure)
    texts = {"Title": caption.title, "Description": caption.notes, "Warning": caption.marks}
    png = {key: text for key, text in texts.items() if text}
    about = {"CreationDate": None, "Subject": f"{caption.notes} {caption.marks}".strip() or None}
    paths = []
    with mpl.rc_context({"pdf.fonttype": EMBEDDED_FONTS}):
        for kind, metadata in (("png", {"Software": None, **png}), ("pdf", about)):
            path = folder / f"{name}.{kind}"
            with replace_file(path) as part:
                figure.savefig(part, format=kind, dpi=DPI, bbox_inches=box, metadata=metadata)
            paths.append(path)
    return paths
