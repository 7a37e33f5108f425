"""Files of a study: its design's tables, and the declared tables, figures and report."""

from __future__ import annotations

from collections.abc import Iterator

from tasktransfer.designs.design import Design, Outputs, Shown
from tasktransfer.present.declared import FIGURE_ENDINGS, TABLE_ENDINGS, Analysis, Figure
from tasktransfer.results.frames import COMMON, compute_frames_version, find_planned_frames
from tasktransfer.results.study import Study

REPORT = "report.html"


def list_outputs(design: Design, study: Study) -> Outputs:
    """Return the files of a study, for the workflow's rules and for the code that writes them.

    A table that may be empty for a finished study (``certain=False``) is not in the list, but it is
    written if it has rows.
    """
    analysis = design.analysis(study)
    planned = [f for f in find_planned_frames(analysis.frames, study) if f.make is not None]
    replaced = {frame.name for frame in planned}
    common = [f"tables/{name}.parquet" for name in COMMON if name not in replaced]
    return Outputs(
        tables=(*common, *(frame.file for frame in planned if not frame.needs)),
        statistics=tuple(frame.file for frame in planned if frame.needs),
        data_tables=analysis.data_tables,
        reference=analysis.reference,
        figures=tuple(
            f"figures/{name}.{ending}"
            for name in list_certain_figures(analysis, study)
            for ending in FIGURE_ENDINGS
        ),
        printed=tuple(
            f"figures/{name}.{ending}"
            for name in list_certain_tables(analysis, study)
            for ending in TABLE_ENDINGS
        ),
        shown=tuple(_list_shown_files(analysis, study)),
        report=REPORT,
        version=compute_frames_version(analysis.frames),
    )


def list_dialogue_tables(design: Design, study: Study) -> tuple[str, ...]:
    """Return the files of tables that are computed from dialogues, which packs include."""
    analysis = design.analysis(study)
    frames = tuple(frame.file for frame in analysis.frames if frame.from_dialogues)
    return tuple(dict.fromkeys((*frames, *analysis.dialogue_files)))


def list_certain_figures(shown: Analysis, study: Study) -> list[str]:
    """Return the names of the figures that a finished study always has."""
    return [f.name for f in shown.figures if f.certain and f.planned(study)]


def list_certain_tables(shown: Analysis, study: Study) -> list[str]:
    """Return the names of the printed tables that a finished study always has."""
    return [t.name for t in shown.tables if t.certain and t.planned(study)]


def _list_shown_files(shown: Analysis, study: Study) -> Iterator[Shown]:
    for kind, ending, declared, names in (
        ("figure", "png", shown.figures, list_certain_figures(shown, study)),
        ("table", "csv", shown.tables, list_certain_tables(shown, study)),
    ):
        for each in declared:
            if each.name in names:
                # If the declaration has no caption, the caption is in a file.
                texts = shown.captions and not each.caption
                name = each.text if isinstance(each, Figure) and each.text else each.name
                caption = f"{shown.captions}/{name}" if texts else ""
                file = f"figures/{each.name}.{ending}"
                yield Shown(file, f"{kind.capitalize()}s", caption, {kind: each.title})
    yield Shown(REPORT, "Report", "report", {"page": "everything on one page"})
