"""Commands that write a design's declared tables, figures and report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


def explained_cell(design: Design, study: Study, words: Sequence[str]) -> dict[str, Any] | None:
    """Explain a cell of a printed table.

    Args:
        design: the study's design.
        study: the study.
        words: name of the table, and names of the row.

    Returns:
        The facts of the cell; None if the first word is not the name of a table.

    Raises:
        ConfigError: the table has no such row.
        RecordError: the tables are missing or damaged.
    """
    if design.shown is None:
        return None
    from tasktransfer.designs.explain_cell import explain_cell, table_named  # noqa: PLC0415
    from tasktransfer.present.view import read_view  # noqa: PLC0415

    shown = design.shown(study)
    table = table_named(shown, words[0])
    if table is None:
        return None
    return explain_cell(study, shown, read_view(study, shown), table, words[1:])
