"""Fonts for labels in all scripts, and numbers for labels whose letters no installed font has."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from functools import cache

import matplotlib as mpl
from matplotlib import font_manager

from tasktransfer.errors import print_note

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
