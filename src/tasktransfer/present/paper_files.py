"""Files of a figure in paper style: PDF, PGF if LaTeX is installed, and its caption as LaTeX."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter

from tasktransfer.files import replace_file
from tasktransfer.present.kit import paper
from tasktransfer.present.kit.caption import read_caption
from tasktransfer.present.kit.style import EMBEDDED_FONTS, lay_out
from tasktransfer.present.printed import escape

ENGINES = ("pdflatex", "lualatex", "xelatex")
"""LaTeX engines that matplotlib can measure text with, in the order in which they are tried."""
MARGIN = 0.02
_WITHOUT_CIRCLES = str.maketrans(".oO*", "//--")
"""Hatchings with circles, for which LaTeX takes minutes, and hatchings with lines."""


def find_engine() -> str | None:
    """Return the first LaTeX engine on the path; None without LaTeX."""
    return next((engine for engine in ENGINES if shutil.which(engine)), None)


def list_paper_endings() -> tuple[str, ...]:
    """Return the endings of a figure's files. PGF files need LaTeX to measure text."""
    return ("pdf", "tex", "pgf") if find_engine() else ("pdf", "tex")


def draw_for_paper(
    draw: Callable[[], Figure | None], on_screen: Figure, path: Path, caption: str
) -> None:
    """Draw a figure in paper style, and write its files atomically; they contain no date.

    Args:
        draw: function that draws the figure.
        on_screen: the figure for the screen, which determines the width.
        path: the files without their endings (``list_paper_endings``).
        caption: caption of the figure's kind. The figure's own title, notes and marks are added.
    """
    width = paper.NARROW if paper.is_narrow(on_screen) else paper.WIDE
    figure = _draw(draw, width)
    if figure is not None and paper.exceeds_width(figure):
        width = paper.WIDE
        figure = _draw(draw, width)
    if figure is None:
        return
    box, own = paper.crop_height(figure, MARGIN), read_caption(figure)
    text = " ".join(part for part in (own.title, caption, own.notes, own.marks) if part)
    about: dict[str, Any] = {"CreationDate": None, "Subject": text}
    with mpl.rc_context({"pdf.fonttype": EMBEDDED_FONTS}), _replace(path, "pdf") as part:
        figure.savefig(part, format="pdf", bbox_inches=box, metadata=about)
    with _replace(path, "tex") as part:
        part.write_text(format_latex_figure(path.name, width, text), encoding="utf-8")
    if engine := find_engine():
        _prepare_for_latex(figure)
        with (
            mpl.rc_context({"pgf.texsystem": engine, "pgf.rcfonts": False}),
            _replace(path, "pgf") as part,
        ):
            figure.savefig(part, format="pgf", bbox_inches=box)


def _draw(draw: Callable[[], Figure | None], width: float) -> Figure | None:
    with paper.use_paper_style(width):
        figure = draw()
        if figure is not None:
            lay_out(figure)
    return figure


def _replace(path: Path, ending: str) -> AbstractContextManager[Path]:
    return replace_file(path.with_name(f"{path.name}.{ending}"))


def format_latex_figure(name: str, width: float, caption: str) -> str:
    """Return a LaTeX figure with a PDF and its caption, which a paper can include."""
    lines = (
        "% Needs \\usepackage{graphicx}. Run LaTeX in this folder, or set \\graphicspath.",
        "\\begin{figure}[t]",
        "  \\centering",
        f"  \\includegraphics[width={width:g}in]{{{name}.pdf}}",
        f"  \\caption{{{escape(caption)}}}",
        f"  \\label{{fig:{name}}}",
        "\\end{figure}",
    )
    return "\n".join(lines) + "\n"


def _prepare_for_latex(figure: Figure) -> None:
    """Escape all texts, because matplotlib writes them into a PGF file as LaTeX code."""
    for mesh in figure.findobj(QuadMesh):  # a colour bar would be an image in another file
        mesh.set_rasterized(False)
    for patch in figure.findobj(Patch):
        if patch.get_hatch():
            patch.set_hatch(patch.get_hatch().translate(_WITHOUT_CIRCLES))
    for text in figure.findobj(Text):
        text.set_text(_escape_lines(text.get_text()))
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            formatter = axis.get_major_formatter()
            if isinstance(formatter, FixedFormatter):  # it would restore the tick labels
                axis.set_major_formatter(FixedFormatter([*map(_escape_lines, formatter.seq)]))


def _escape_lines(text: str) -> str:
    """Escape each line; formulas (``$``) are LaTeX code already."""
    return text if "$" in text else "\n".join(map(escape, text.split("\n")))
