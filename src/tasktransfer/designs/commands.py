"""Commands that compute and show a study's results, for every design."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tasktransfer.designs.design import Design
from tasktransfer.present.declared import Analysis
from tasktransfer.results.study import Study

if TYPE_CHECKING:
    from tasktransfer.present.figures import FigureStyle
    from tasktransfer.results.frames import Frames


def write_collected_tables(design: Design, study: Study, *, complete: bool = False) -> None:
    """Write the frames that are computed from the available records.

    Args:
        design: the study's design.
        study: the study.
        complete: true to raise for a study with missing results, and write nothing.
    """
    from tasktransfer.results.frame_files import write_collected_frames  # noqa: PLC0415

    analysis = design.analysis(study)
    write_collected_frames(
        study, analysis.frames, analysis.metadata, analysis.about, complete=complete
    )


def write_statistics(design: Design, study: Study) -> None:
    """Write the frames that are computed from collected frames."""
    from tasktransfer.results.frame_files import write_statistic_frames  # noqa: PLC0415

    analysis = design.analysis(study)
    if not any(frame.needs and frame.planned(study) for frame in analysis.frames):
        print(
            f"{study.config_file}: The design {design.name} has no statistics, so nothing was "
            "computed."
        )
        return
    write_statistic_frames(study, analysis.frames, analysis.about)


def write_figures(design: Design, study: Study) -> None:
    """Write the printed tables, and draw the figures whose data have changed."""
    from tasktransfer.present.tables import build_printed_tables, write_tables  # noqa: PLC0415

    analysis = design.analysis(study)
    frames, out = read_frames(study, analysis), Path(study.figures)
    for path in write_tables(build_printed_tables(analysis, frames), out):
        print(path)
    _draw_figures(analysis, frames, out, "screen")


def write_paper_figures(design: Design, study: Study) -> None:
    """Draw the figures in paper style, into a folder next to the other figures."""
    from tasktransfer.present.figures import find_latex_engine  # noqa: PLC0415

    analysis = design.analysis(study)
    _draw_figures(analysis, read_frames(study, analysis), Path(study.figures) / "paper", "paper")
    if find_latex_engine() is None:
        print(
            "No PGF files were written, because LaTeX is not installed. Install pdflatex, lualatex "
            "or xelatex."
        )


def _draw_figures(analysis: Analysis, frames: Frames, out: Path, style: FigureStyle) -> None:
    """Draw the figures, print their paths, and explain why some figures were not drawn."""
    from tasktransfer.present.figures import draw_figures  # noqa: PLC0415

    drawn = draw_figures(analysis, frames, out, style)
    for path in drawn.list_files(out):
        print(path)
    for hole in drawn.left:
        print(hole.why)


def write_report(design: Design, study: Study) -> None:
    """Write the report: one HTML file with the answer, tables, figures and provenance."""
    from tasktransfer.present.page.page import write_page  # noqa: PLC0415

    analysis = design.analysis(study)
    frames = read_frames(study, analysis)
    print(write_page(analysis, frames, Path(study.figures), Path(study.report)))


def read_frames(study: Study, analysis: Analysis) -> Frames:
    """Return a study's frames for tables and figures. Each frame is read on first use.

    Raises:
        RecordError: the frames have not been written, or are damaged.
    """
    from tasktransfer.results import frame_files  # noqa: PLC0415

    return analysis.complete(frame_files.read_frames(study, analysis.frames, analysis.about))
