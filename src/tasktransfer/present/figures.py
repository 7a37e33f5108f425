"""Declared figures, which are drawn again only if their data or code changed.

In paper style, a figure has a PDF, its caption as LaTeX, and a PGF file if LaTeX is installed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import pandas as pd
import pyarrow as pa
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter

import tasktransfer
from tasktransfer.core.identity import compute_digest
from tasktransfer.files import json_text, replace_file
from tasktransfer.files.progress import show_progress
from tasktransfer.present.declared import FIGURE_ENDINGS, Analysis, Figure
from tasktransfer.present.kit import paper
from tasktransfer.present.kit.paper import read_caption
from tasktransfer.present.kit.style import EMBEDDED_FONTS, fix_layout, save_figure
from tasktransfer.present.printed import escape_latex, to_csv
from tasktransfer.present.tables import AbsentOutput
from tasktransfer.results.frames import Frames

FigureStyle = Literal["screen", "paper"]
MANIFEST = "manifest.json"
ENGINES = ("pdflatex", "lualatex", "xelatex")
"""LaTeX engines that matplotlib can measure text with, in the order in which they are tried."""
MARGIN = 0.02
_WITHOUT_CIRCLES = str.maketrans(".oO*", "//--")
"""Hatchings with circles, for which LaTeX takes minutes, and hatchings with lines."""
CODE = ("present", "results", "stats", "datasets")
"""Folders of the package on which every figure depends, in addition to its design's folder."""


@dataclass(frozen=True, slots=True)
class DrawingResult:
    """Result of drawing figures.

    Args:
        names: figures that have files.
        redrawn: figures that were drawn in this call.
        left: figures that the study does not have, with the reason.
    """

    names: list[str]
    redrawn: list[str]
    left: list[AbsentOutput]
    endings: Sequence[str] = FIGURE_ENDINGS

    def list_files(self, folder: Path) -> list[Path]:
        """Return the paths of the files of all figures in a folder."""
        return [folder / f"{name}.{ending}" for name in self.names for ending in self.endings]


def draw_figures(
    shown: Analysis, frames: Frames, out: Path, style: FigureStyle = "screen"
) -> DrawingResult:
    """Draw those figures of a study whose data have changed, and write them to a folder.

    ``manifest.json`` in this folder has a digest of each figure's inputs. A figure is kept if its
    digest is unchanged and its files exist. Files of figures without data are removed. The manifest
    is written after each figure, so that interrupted drawing resumes where it stopped. Module
    ``kit.paper`` describes the style ``paper``.
    """
    out.mkdir(parents=True, exist_ok=True)
    manifest = _read_manifest(out / MANIFEST)
    digests = dict(manifest)
    endings = list_paper_endings() if style == "paper" else FIGURE_ENDINGS
    drawn = DrawingResult([], [], [], endings)
    for figure in show_progress(shown.figures, "drawing figures"):
        part = frames.select(figure.reads)
        if figure.part is not None:
            part = figure.part(part)
        caption = shown.read_caption(figure.text or figure.name, figure.caption)
        digest = compute_drawing_digest(figure, part)
        if style == "paper":
            digest = compute_digest([digest, caption])
        csv = out / f"{figure.name}.csv"
        paths = [out / f"{figure.name}.{ending}" for ending in endings]
        paths += [csv] if figure.data else []
        if manifest.get(figure.name) != digest or not all(path.is_file() for path in paths):
            canvas = figure.draw(part) if figure.planned(frames.study) else None
            if canvas is None:
                drawn.left.append(describe_absent_figure(figure))
                continue
            if style == "paper":
                draw_for_paper(partial(figure.draw, part), canvas, out / figure.name, caption)
            else:
                save_figure(canvas, out, figure.name)
            if figure.data is not None:
                with replace_file(csv) as file:
                    file.write_text(to_csv(figure.data(part)), encoding="utf-8")
            drawn.redrawn.append(figure.name)
            digests[figure.name] = digest
            _write_manifest(out / MANIFEST, digests)
        drawn.names.append(figure.name)
    gone = [name for name in digests if name not in drawn.names]
    _remove_files(out, gone, endings)
    tables = {table.name for table in shown.tables}
    _remove_files(out, [name for name in gone if name not in tables], ("csv",))
    if set(digests) != set(drawn.names):
        _write_manifest(out / MANIFEST, {name: digests[name] for name in drawn.names})
    return drawn


def describe_absent_figure(figure: Figure) -> AbsentOutput:
    """Return an entry that explains why the study does not have a figure."""
    return AbsentOutput(
        figure.name,
        figure.title,
        f"The figure “{figure.title}” is not shown, because the study {figure.nothing}.",
        figure.section,
    )


def compute_drawing_digest(figure: Figure, part: Frames) -> str:
    """Return a digest of the frames, names and code on which a figure depends."""
    metadata = part.metadata
    return compute_digest(
        {
            "figure": [figure.name, figure.title],
            "code": _compute_code_digest(
                part.study.config.design, _locate_source_file(figure.draw)
            ),
            "study": [metadata.study, metadata.synthetic, metadata.cuts],
            "facts": dict(metadata.facts),
            "shorts": dict(metadata.shorts),
            "order": {key: list(names) for key, names in metadata.order.items()},
            "frames": {name: _compute_frame_digest(frame) for name, frame in part.items()},
        }
    )


def _compute_frame_digest(frame: pd.DataFrame) -> str:
    """Return a digest of a frame's values that is equal on all machines."""
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return hashlib.sha256(sink.getvalue()).hexdigest()


@cache
def _compute_code_digest(design: str, file: str) -> str:
    """Return a digest of all drawing code, so that code changes redraw figures.

    ``file`` is the file of the figure's function, which may be in a plugin.
    """
    package = Path(tasktransfer.__file__).parent
    folders = [*CODE, f"designs/{design}"]
    digest = hashlib.sha256(mpl.__version__.encode())
    paths = {path for folder in folders for path in (package / folder).rglob("*.py")}
    for path in sorted({*paths, Path(file)}):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _locate_source_file(draw: Any) -> str:
    return str((draw.func if isinstance(draw, partial) else draw).__code__.co_filename)


def _read_manifest(path: Path) -> dict[str, str]:
    """Read the mapping from figure to digest in a manifest.

    It is empty if the file is missing or unreadable, so that all figures are drawn again.
    """
    try:
        manifest: Any = json_text.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _write_manifest(path: Path, digests: dict[str, str]) -> None:
    with replace_file(path) as part:
        part.write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _remove_files(out: Path, names: Sequence[str], endings: Sequence[str]) -> None:
    for name in names:
        for ending in endings:
            (out / f"{name}.{ending}").unlink(missing_ok=True)


# --- paper style ----------------------------------------------------------------------------------


def find_latex_engine() -> str | None:
    """Return the name of the first LaTeX engine on the PATH, or None if LaTeX is not installed."""
    return next((engine for engine in ENGINES if shutil.which(engine)), None)


def list_paper_endings() -> tuple[str, ...]:
    """Return the file name endings of a figure for papers.

    PGF is among them only if LaTeX is installed, which matplotlib needs to measure text.
    """
    return ("pdf", "tex", "pgf") if find_latex_engine() else ("pdf", "tex")


def draw_for_paper(
    draw: Callable[[], Canvas | None], on_screen: Canvas, path: Path, caption: str
) -> None:
    """Draw a figure in paper style, and write its files atomically without dates.

    Nothing is written if the figure has nothing to plot.

    Args:
        draw: function that draws the figure.
        on_screen: the figure for the screen, which determines the width.
        path: the files without their endings (``list_paper_endings``).
        caption: caption of the figure's kind. The figure's own title, notes and marks are added.
    """
    width = paper.NARROW if paper.can_fit_one_column(on_screen) else paper.WIDE
    figure = _draw_with_width(draw, width)
    if figure is not None and paper.exceeds_width(figure):
        width = paper.WIDE
        figure = _draw_with_width(draw, width)
    if figure is None:
        return
    box, own = paper.compute_cropped_box(figure, MARGIN), read_caption(figure)
    text = " ".join(part for part in (own.title, caption, own.notes, own.marks) if part)
    about: dict[str, Any] = {"CreationDate": None, "Subject": text}
    with (
        mpl.rc_context({"pdf.fonttype": EMBEDDED_FONTS}),
        _replace_figure_file(path, "pdf") as part,
    ):
        figure.savefig(part, format="pdf", bbox_inches=box, metadata=about)
    with _replace_figure_file(path, "tex") as part:
        part.write_text(format_latex_figure(path.name, width, text), encoding="utf-8")
    if engine := find_latex_engine():
        _prepare_for_latex(figure)
        with (
            mpl.rc_context({"pgf.texsystem": engine, "pgf.rcfonts": False}),
            _replace_figure_file(path, "pgf") as part,
        ):
            figure.savefig(part, format="pgf", bbox_inches=box)


def _draw_with_width(draw: Callable[[], Canvas | None], width: float) -> Canvas | None:
    with paper.use_paper_style(width):
        figure = draw()
        if figure is not None:
            fix_layout(figure)
    return figure


def _replace_figure_file(path: Path, ending: str) -> AbstractContextManager[Path]:
    return replace_file(path.with_name(f"{path.name}.{ending}"))


def format_latex_figure(name: str, width: float, caption: str) -> str:
    """Return the LaTeX code of a figure environment with the PDF, its caption and a label."""
    lines = (
        "% Needs \\usepackage{graphicx}. Run LaTeX in this folder, or set \\graphicspath.",
        "\\begin{figure}[t]",
        "  \\centering",
        f"  \\includegraphics[width={width:g}in]{{{name}.pdf}}",
        f"  \\caption{{{escape_latex(caption)}}}",
        f"  \\label{{fig:{name}}}",
        "\\end{figure}",
    )
    return "\n".join(lines) + "\n"


def _prepare_for_latex(figure: Canvas) -> None:
    """Escape all texts of a figure, because a PGF file contains them as LaTeX code."""
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
    """Escape each line of a matplotlib text as LaTeX.

    A text with a formula, whose dollar signs have no backslash, is LaTeX code already and is
    returned unchanged.
    """
    plain = text.replace("\\$", "")
    if "$" in plain:
        return text
    return "\n".join(map(escape_latex, text.replace("\\$", "$").split("\n")))
