"""Captions, fonts, and paper style: figures 5.5 or 3.3 inches wide, in serif of at most 8 points.

The title and the notes of a figure are in its caption, and not in the picture. The style is a
context (``use_paper_style``), which the functions of ``style`` and ``panels`` respect. So a figure
needs no code of its own for it.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from tasktransfer.errors import print_note

WIDE, NARROW = 5.5, 3.3
"""Widths of a page's text and of one column of two, inches."""
POINTS = 8.0
"""Font size of all text, except numbers in cells and labels within panels."""
CELL = "cell"
"""Mark (gid) of numbers in cells, whose size depends on their cell."""
_TALLEST = 8.3
"""Height of a page's text, inches, for matrices that could be flatter."""
_FLATTEST = 0.36
"""Minimum height of a matrix, as a fraction of its height on screen."""
_NARROWEST = 0.8
"""Minimum width of a panel, as a fraction of its width on screen."""
_LEAST_PANEL = 1.3
"""Width below which titles of neighbouring panels overlap, inches."""
_LABELS = 0.7
"""Width of the axis labels to the left of all panels, inches."""
_FULL = 0.88
"""Fraction of a cell's width that its text may fill."""
_TOLERANCE = 0.02
"""Width that content may exceed a figure by, inches."""
_LEAST = 5.0
"""Minimum font size in cells."""
_WIDTH: ContextVar[float] = ContextVar("paper_width", default=math.inf)


@contextmanager
def use_paper_style(width: float) -> Iterator[None]:
    """Draw all figures within the context in paper style, ``width`` inches wide.

    matplotlib includes the fonts, so that identical tables give identical files on every machine.
    """
    token = _WIDTH.set(width)
    try:
        with mpl.rc_context(
            {
                "font.family": ["STIXGeneral", "DejaVu Serif"],
                "mathtext.fontset": "stix",
                "font.size": POINTS,
                "axes.linewidth": 0.6,
                "xtick.major.width": 0.6,
                "ytick.major.width": 0.6,
            }
        ):
            yield
    finally:
        _WIDTH.reset(token)


def is_paper_style() -> bool:
    """Return whether figures are currently drawn in paper style."""
    return math.isfinite(_WIDTH.get())


def get_final_width(figure: Figure) -> float:
    """Return the width of the saved figure in inches."""
    return min(float(figure.get_figwidth()), _WIDTH.get())


def can_fit_one_column(figure: Figure) -> bool:
    """Return whether a figure fits into one column of a two-column page.

    It can if it has one column of panels and is narrower than 5.7 inches.
    """
    grids = [axes.get_gridspec() for axes in figure.axes if axes.get_label() != "<colorbar>"]
    columns = max((grid.ncols for grid in grids if grid is not None), default=1)
    return columns == 1 and bool(figure.get_figwidth() < 5.7)


def count_columns(count: int, width: float, most: int, height: float = 0.0) -> int:
    """Return the number of columns of panels.

    Args:
        count: number of panels.
        width: width of a panel with its labels on screen, inches.
        most: maximum number of columns on screen.
        height: height of a panel on screen, inches. More columns are used if the panels, at three
            quarters of this height, would be higher than a page.
    """
    columns = min(most, max(1, count))
    if is_paper_style():
        room = (_WIDTH.get() - _LABELS) / (_NARROWEST * width)
        columns = min(columns, max(1, int(room)))
        most = min(most, int(_WIDTH.get() / _LEAST_PANEL))
        while columns < most and math.ceil(count / columns) * 0.75 * height > _TALLEST:
            columns += 1
    return columns


def compute_paper_height(
    width: float, height: float, actual: float, rows: float, rest: float
) -> float:
    """Return a matrix's height on paper, where cells are flattened to stay wide enough.

    Args:
        width: width of the matrix on screen, inches.
        height: height of the matrix on screen, inches.
        actual: width of the matrix on paper, inches.
        rows: number of matrices above each other.
        rest: height of everything else in the figure, inches.
    """
    shrunk = height * min(1.0, actual / width)
    return max(min(shrunk, (_TALLEST - rest) / rows), _FLATTEST * height)


def set_paper_size(figure: Figure, height: float | None = None) -> None:
    """Set a figure's width, height (inches) and fonts for a paper.

    By default, the height shrinks with the width.
    """
    wide, high = figure.get_size_inches()
    width = _WIDTH.get()
    shrunk = min(_TALLEST, high * min(1.0, max(0.7, width / wide)))
    figure.set_size_inches(width, height or shrunk)
    for text in figure.findobj(Text):
        if text.get_gid() != CELL and float(text.get_fontsize()) > POINTS - 0.6:
            text.set_fontsize(POINTS)


def fit_to_width(figure: Figure) -> None:
    """Move panels inward if labels exceed the figure, and shrink numbers to fit their cells."""
    engine = figure.get_layout_engine()
    wide = float(figure.get_figwidth())
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.execute(figure)
        box = figure.get_tightbbox()
        left, right = max(0.0, -box.x0), max(0.0, box.x1 - wide)
        if left + right > 0.01:
            inner = (left / wide, 0, 1 - (left + right) / wide, 1)
            engine.set(rect=inner)
            engine.execute(figure)
    for axes in figure.axes:
        _fit_cell_texts(axes)


def _fit_cell_texts(axes: Any) -> None:
    texts = [text for text in axes.texts if text.get_gid() == CELL]
    if not texts:
        return
    (left, top), (right, bottom) = axes.transData.transform([(0, 0), (1, 1)])
    room, height = _FULL * abs(right - left), 0.95 * abs(bottom - top)
    boxes = [text.get_window_extent() for text in texts]
    scale = min(1.0, *(room / box.width for box in boxes), *(height / box.height for box in boxes))
    for text in texts:
        text.set_fontsize(max(_LEAST, scale * float(text.get_fontsize())))


def exceeds_width(figure: Figure) -> bool:
    """Return whether a laid-out figure has content beyond its width."""
    box = figure.get_tightbbox()
    return bool(box.x0 < -_TOLERANCE or box.x1 > figure.get_figwidth() + _TOLERANCE)


def compute_cropped_box(figure: Figure, margin: float) -> Bbox:
    """Return the bounding box of a figure's full width and of its content's height, in inches."""
    box = figure.get_tightbbox()
    return Bbox([[0, box.y0 - margin], [figure.get_figwidth(), box.y1 + margin]])


TITLE, NOTES, MARKS = "title", "notes", "marks"
"""Marks (gid) of the texts of a caption's parts."""


@dataclass(frozen=True, slots=True)
class FigureCaption:
    """Parts of a caption: title with study and seeds, notes, and explanations of the badges."""

    title: str
    notes: str
    marks: str


def add_caption_notes(figure: Figure, notes: Sequence[str]) -> None:
    """Add sentences to the caption of a figure."""
    add_to_caption(figure, NOTES, notes)


def add_to_caption(figure: Figure, part: str, texts: Sequence[str]) -> None:
    """Store texts for a part of the caption in the figure, as invisible artists."""
    for text in texts:
        figure.text(0, 0, text, gid=part, visible=False, in_layout=False)


def read_caption(figure: Figure) -> FigureCaption:
    """Return the caption of a figure."""
    parts = (
        " ".join(text.get_text() for text in figure.texts if text.get_gid() == part)
        for part in (TITLE, NOTES, MARKS)
    )
    return FigureCaption(*parts)


FALLBACKS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC"),
    *("WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback", "Microsoft YaHei"),
    *("SimHei", "PingFang SC", "Hiragino Sans", "Yu Gothic", "Malgun Gothic", "Noto Sans KR"),
    *("Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Thai"),
    *("Noto Sans Bengali", "Noto Sans Tamil", "Noto Emoji", "Symbola", "Segoe UI Symbol"),
    *("Arial Unicode MS", "Unifont"),
)
"""Fonts of other scripts, in the order in which they are tried after matplotlib's own font."""
FIRST_SHAPED = (3, 11)
"""First version of matplotlib that joins Arabic letters and writes them from right to left."""


@cache
def list_fallback_fonts() -> tuple[str, ...]:
    """Return the installed fonts in ``FALLBACKS``."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return tuple(name for name in FALLBACKS if name in installed)


def list_label_fonts() -> list[str]:
    """Return the current style's font families, followed by installed fallbacks."""
    return [*mpl.rcParams["font.family"], *list_fallback_fonts()]


@cache
def _read_letters(family: str) -> frozenset[int]:
    """Return the codes of the letters that a font contains."""
    path = font_manager.findfont(font_manager.FontProperties(family=[family]))
    return frozenset(font_manager.get_font(path).get_charmap())


def can_draw(text: str) -> bool:
    """Return whether the label fonts contain all letters of a text."""
    if text.isascii():
        return True
    letters = [_read_letters(family) for family in list_label_fonts()]
    return all(
        any(ord(letter) in known for known in letters) and not _is_drawn_unshaped(letter)
        for letter in text
        if not letter.isspace() and unicodedata.category(letter) not in ("Cf", "Mn")
    )


def _is_drawn_unshaped(letter: str) -> bool:
    """Return whether matplotlib would draw a right-to-left letter incorrectly."""
    is_rtl = unicodedata.bidirectional(letter) in ("R", "AL")
    return is_rtl and mpl.__version_info__[:2] < FIRST_SHAPED


def number_undrawable_labels(
    labels: Iterable[str], draws: Callable[[str], bool] = can_draw
) -> dict[str, str]:
    """Replace labels that cannot be drawn by numbers such as ``#2``.

    Args:
        labels: all labels of a figure. Numbers are their positions from 1.
        draws: function that returns whether a label can be drawn.
    """
    listed = dict.fromkeys(labels)
    return {label: f"#{n}" for n, label in enumerate(listed, start=1) if not draws(label)}


def describe_label_numbers(numbers: dict[str, str]) -> list[str]:
    """Return a list with the caption's sentence on labels that are drawn as numbers.

    The list is empty if no label has a number.
    """
    if not numbers:
        return []
    listed = ", ".join(f"{number} is {label}" for label, number in numbers.items())
    return [f"No installed font has the letters of these labels, so they are numbered: {listed}."]


@cache
def print_missing_font_note() -> None:
    """Print the note about labels that are drawn as numbers, once per process."""
    print_note(
        "figures: No installed font has the letters of some labels, so the figures show numbers, "
        "and their captions list the labels. To draw the labels, install a font that has their "
        f"letters, such as {FALLBACKS[0]}, and draw the figures again."
    )
