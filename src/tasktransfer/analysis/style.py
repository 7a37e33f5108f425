"""What all figures share: colours, number format, title, and how they are saved."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from tasktransfer.analysis.names import synthetic_mark
from tasktransfer.analysis.tables import Metadata
from tasktransfer.records import replacing

INK = "#1a1a1a"
NEUTRAL = "#e4dcc8"
"""Sand: not on the diverging scale, so that a baseline is never read as an improvement."""
MISSING: dict[str, Any] = {
    "facecolor": "#d9d9d9",
    "edgecolor": "#808080",
    "hatch": "////",
    "linewidth": 0.0,
}
ALGORITHM_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""Okabe and Ito's palette, told apart by colour-blind readers."""

DPI = 200
_EMBEDDED_FONTS = 42
"""TrueType in PDFs: text stays text, which journals ask for."""


def signed(value: float) -> str:
    """A signed number with one decimal (none from 1000 on), a true minus, no negative zero."""
    text = f"{value:+.1f}" if abs(value) < 999.95 else f"{value:+.0f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")


def heading(what: str, seeds: int, metadata: Metadata) -> list[str]:
    """The lines of a figure's title: the mark of synthetic data, what it shows, of which study."""
    mark = synthetic_mark(metadata).rstrip(". ")
    study = f"study {metadata.study}, {seeds} seed{'' if seeds == 1 else 's'}"
    return [*([mark] if mark else []), what, study]


def wrapped(lines: list[str], figure: Figure, points: float) -> str:
    """Break lines that are wider than the figure; a letter is taken as 0.57 of the font size."""
    letters = max(20, int(figure.get_figwidth() * 72 / (0.57 * points)))
    return "\n".join(part for line in lines for part in textwrap.wrap(line, letters))


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write ``name``.png (200 dpi) and ``name``.pdf, atomically and without a date, so that the
    same tables give the same files."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # it is laid out now; doing so again per file doubles the time
    paths = []
    with mpl.rc_context({"pdf.fonttype": _EMBEDDED_FONTS}):
        for kind, metadata in (("png", {"Software": None}), ("pdf", {"CreationDate": None})):
            path = folder / f"{name}.{kind}"
            with replacing(path) as part:
                figure.savefig(
                    part, format=kind, dpi=DPI, bbox_inches="tight", metadata=dict(metadata)
                )
            paths.append(path)
    return paths
