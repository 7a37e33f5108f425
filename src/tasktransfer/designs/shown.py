"""Commands that write a design's declared tables, figures and report."""

from __future__ import annotations

from pathlib import Path

from tasktransfer.designs.design import Design, nothing_to_do
from tasktransfer.results.study import Study


def write_figures(design: Design, study: Study) -> None:
    """Draw the figures whose data changed, and write the printed tables."""
    if design.shown is None:
        nothing_to_do(study)
        return
    from tasktransfer.present.figures import draw_figures  # noqa: PLC0415
    from tasktransfer.present.tables import build_printed_tables, write_tables  # noqa: PLC0415
    from tasktransfer.present.view import read_view  # noqa: PLC0415

    shown = design.shown(study)
    view, out = read_view(study, shown), Path(study.figures)
    for path in write_tables(build_printed_tables(shown, view), out):
        print(path)
    drawn = draw_figures(shown, view, out)
    for path in drawn.files(out):
        print(path)
    for hole in drawn.left:
        print(hole.why)


def write_report(design: Design, study: Study) -> None:
    """Write the report: one HTML file with the answer, tables, figures and provenance."""
    if design.shown is None:
        nothing_to_do(study)
        return
    from tasktransfer.present.page.page import write_page  # noqa: PLC0415
    from tasktransfer.present.view import read_view  # noqa: PLC0415

    shown = design.shown(study)
    print(write_page(shown, read_view(study, shown), Path(study.figures), Path(study.report)))
