"""Files of a study: its design's tables, and the declared tables, figures and report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tasktransfer.designs.design import Design, Outputs, Shown
from tasktransfer.present.declared import FIGURE_ENDINGS, TABLE_ENDINGS, Figure, Presentation
from tasktransfer.results.study import Study

REPORT = "report.html"


def outputs_of(design: Design, study: Study) -> Outputs:
    """Return the files of a study, for the workflow's rules and for the code that writes them.

    A table that may be empty for a finished study (``certain=False``) is not in the list, but it is
    written if it has rows.
    """
    outputs = design.outputs(study)
    if design.shown is None:
        return outputs
    shown = design.shown(study)
    return replace(
        outputs,
        figures=tuple(
            f"figures/{n}.{end}" for n in figures_in(shown, study) for end in FIGURE_ENDINGS
        ),
        printed=tuple(
            f"figures/{n}.{end}" for n in tables_in(shown, study) for end in TABLE_ENDINGS
        ),
        shown=tuple(_list_shown_files(shown, study)),
        report=REPORT,
    )


def figures_in(shown: Presentation, study: Study) -> list[str]:
    """Return the names of the figures that a finished study always has."""
    return [f.name for f in shown.figures if f.certain and f.planned(study)]


def tables_in(shown: Presentation, study: Study) -> list[str]:
    """Return the names of the printed tables that a finished study always has."""
    return [t.name for t in shown.tables if t.certain and t.planned(study)]


def _list_shown_files(shown: Presentation, study: Study) -> Iterator[Shown]:
    for kind, ending, declared, names in (
        ("figure", "png", shown.figures, figures_in(shown, study)),
        ("table", "csv", shown.tables, tables_in(shown, study)),
    ):
        for each in declared:
            if each.name in names:
                # If the declaration has no caption, the caption is in a file.
                texts = shown.captions and not each.caption
                name = each.text if isinstance(each, Figure) and each.text else each.name
                caption = f"{shown.captions}/{name}" if texts else ""
                file = f"figures/{each.name}.{ending}"
                yield Shown(file, f"{kind.capitalize()}s", caption, {kind: each.title})
    yield Shown(REPORT, "Report", "report", {"page": "everything in one page"})
