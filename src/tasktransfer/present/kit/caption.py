"""Texts that belong to a figure but are not drawn: they are in its files and in captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

TITLE, NOTES, MARKS = "title", "notes", "marks"
"""Marks (gid) of the texts of a caption's parts."""


@dataclass(frozen=True, slots=True)
class Caption:
    """Parts of a caption: title with study and seeds, notes, and explanations of the badges."""

    title: str
    notes: str
    marks: str


def add_notes(figure: Figure, notes: Sequence[str]) -> None:
    """Add sentences to a figure's caption."""
    add_to_caption(figure, NOTES, notes)


def add_to_caption(figure: Figure, part: str, texts: Sequence[str]) -> None:
    """Keep texts of one part of the caption with the figure, as artists that are never drawn."""
    for text in texts:
        figure.text(0, 0, text, gid=part, visible=False, in_layout=False)


def read_caption(figure: Figure) -> Caption:
    """Return the caption of a figure."""
    parts = (
        " ".join(text.get_text() for text in figure.texts if text.get_gid() == part)
        for part in (TITLE, NOTES, MARKS)
    )
    return Caption(*parts)
