"""Declarations of a design's tables, figures, and the answer to its question.

The Snakefile reads the names of files here, so this module must not import pandas or matplotlib.
Functions that make a table or draw a figure belong to lazy modules (``core.lazy``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.core.runs import Run
from tasktransfer.present.columns import Column, Row
from tasktransfer.results.frames import Frame, Frames, is_always_planned
from tasktransfer.results.study import Study

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Canvas

    from tasktransfer.present.html import HtmlTable
    from tasktransfer.present.printed import Layout
    from tasktransfer.results.collect import Collected
    from tasktransfer.results.store import Metadata

SECTIONS = {
    "answer": "Answer",
    "matrix": "Matrix",
    "targets": "Targets: best source, state of the baseline",
    "figures": "Figures",
    "results": "Tables",
    "sure": "Uncertainty",
    "missing": "Missing results",
    "cost": "Cost",
    "made": "Provenance",
}
"""Sections of a report, in order, with their titles."""

Section = Literal["answer", "figures", "results", "sure", "cost", "made"]
"""Section of a declared table or figure. A figure in ``answer`` is the answer as a picture."""

TABLE_ENDINGS = ("csv", "md", "tex", "parquet", "html")
FIGURE_ENDINGS = ("png", "pdf")


@dataclass(frozen=True, slots=True)
class FlatTable:
    """A table with one line per row of the frame: words first, then right-aligned numbers.

    ``blocks`` is the column whose changes are separated by a rule.
    """

    columns: tuple[Column, ...]
    blocks: str = ""


@dataclass(frozen=True, slots=True)
class PivotTable:
    """A table with one line per combination of ``rows``, and one column per value of ``across``.

    Args:
        rows: columns that name a line.
        across: frame column whose values become the table's columns.
        cell: text of a cell.
        published: text of the paper's value, in a second line below the cell.
        order: kind of name in ``Metadata.order`` that sorts the columns; default ``across``.
        heads: value of ``across`` → title of the column.
        blocks: column whose changes are separated by a rule.
    """

    rows: tuple[Column, ...]
    across: str
    cell: Column
    published: Column | None = None
    order: str = ""
    heads: Callable[[str], str] = str
    blocks: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A printed table: ``<name>`` in all of ``TABLE_ENDINGS``.

    Args:
        name: name of the files.
        title: short title, for example "Table 3".
        make: frames → the table's rows. A table without rows is not written, and the report prints
            ``nothing``.
        shape: layout declaration, or (frames, frame) → the layout.
        keys: columns that identify a row, by which ``explain`` finds it.
        caption: one or two sentences. If empty, the design's file ``workflow/report/<name>.rst``
            has the caption, which Snakemake's own report shows too.
        notes: (frames, frame) → notes of one or two sentences each.
        paper: source of the published values, for example "Table 3 of Zhang et al. 2023".
        nothing: reason why a study does not have the table, to follow "The study".
        needs: requirement for the table to have values, which the page prints if it has none.
        section: section of the report.
        folded: true if the table is collapsed on the page.
        planned: returns whether a study will have the table, according to its plan.
        certain: true if a complete study always has rows. Snakemake knows only these tables.
        cited: true if no number is from the study, but from a paper or a formula.
        described: returns the meaning of columns, for the Parquet file.
        runs: (row, run) → whether the row is computed from the run. By default the row's columns
            must agree with the run's method, model, seed and ``about``.
        among: (row, its runs by ``runs``) → the runs that it uses, if one run can rule out another.
    """

    name: str
    title: str
    make: Callable[[Frames], pd.DataFrame | None]
    shape: FlatTable | PivotTable | Callable[[Frames, pd.DataFrame], Layout]
    keys: tuple[str, ...] = ()
    caption: str = ""
    notes: Callable[[Frames, pd.DataFrame], Sequence[str]] = lambda frames, frame: ()
    paper: str = ""
    nothing: str = "has no results for this table"
    needs: str = ""
    section: Section = "results"
    folded: bool = False
    planned: Callable[[Study], bool] = is_always_planned
    certain: bool = True
    cited: bool = False
    described: Callable[[], Mapping[str, str]] = dict
    runs: Callable[[Mapping[str, Any], Run], bool] | None = None
    among: Callable[[Mapping[str, Any], Sequence[Run]], Sequence[Run]] | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: ``<name>.png`` and ``.pdf``.

    Args:
        name: name of the files.
        title: short title, shown above the figure.
        draw: frames → the figure, or None if there is nothing to plot.
        reads: frames that the figure is computed from. It gets only these, and is drawn again if
            one of them changes.
        caption: as for a table.
        nothing: as for a table.
        section: section of the report.
        folded: true if the figure is collapsed on the page.
        planned: as for a table.
        certain: as for a table.
        part: frames → the rows that the figure uses, if it does not use the whole frames.
        text: name of its file in ``workflow/report``, if several figures share one.
        data: frames → the plotted numbers, written to ``<name>.csv`` if they are in no table.
    """

    name: str
    title: str
    draw: Callable[[Frames], Canvas | None]
    reads: tuple[str, ...]
    caption: str = ""
    nothing: str = "has no results for this figure"
    section: Section = "figures"
    folded: bool = False
    planned: Callable[[Study], bool] = is_always_planned
    certain: bool = True
    part: Callable[[Frames], Frames] | None = None
    text: str = ""
    data: Callable[[Frames], pd.DataFrame] | None = None


@dataclass(frozen=True, slots=True)
class Cells:
    """A frame whose rows ``explain`` finds without the name of a table: cells of a heatmap.

    Args:
        frame: name of the frame.
        keys: columns that identify a row.
        name: run → the keys of the row that is computed from it, or None if it has no row.
        is_reference: (row, run) → whether the row's runs are compared with the run.
        seeds: column with the list of compared seeds.
        means: columns with the mean scores of the row's runs and of the references.
        shorts: study → short names by name.
        notes: (rows of the frame, row) → remarks on the row.
        described: returns the meaning of columns.
        omits: row → columns that would mislead in this row.
        printed: run → printed names of its method, by which ``explain`` finds the run, too.
    """

    frame: str
    keys: tuple[str, ...]
    name: Callable[[Run], Mapping[str, str] | None]
    is_reference: Callable[[Row, Run], bool]
    seeds: str
    means: tuple[str, str]
    shorts: Callable[[Study], Mapping[str, str]] = lambda study: {}
    notes: Callable[[Sequence[Row], Row], Sequence[str]] = lambda rows, row: ()
    described: Callable[[], Mapping[str, str]] = dict
    omits: Callable[[Row], Sequence[str]] = lambda row: ()
    printed: Callable[[Run], Sequence[str]] = lambda run: ()


@dataclass(frozen=True, slots=True)
class Block:
    """Other content of a page: text, facts (name and value), a table, or HTML of the package.

    The table exists only on the page. The HTML is ``markupsafe.Markup``.
    """

    text: str = ""
    facts: Sequence[tuple[str, str]] = ()
    table: HtmlTable | None = None
    html: str = ""


if TYPE_CHECKING:
    from tasktransfer.present.page import common_blocks
    from tasktransfer.results import common_frames
else:
    common_blocks = LazyPackage("tasktransfer.present.page").common_blocks
    common_frames = LazyPackage("tasktransfer.results").common_frames


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that is computed from a study's records, and shown.

    Args:
        question: the study's question.
        answer: frames → sentences that the frames support. They claim no effect that is not
            significant. The page shows the first one with the blocks and the figure of the section
            ``answer``, and collapses the others.
        frames: the design's frames, in addition to the common ones (``results.common_frames``).
        about: keys of ``Run.about`` that identify a run; columns of the common frames.
        metadata: collected records → metadata of every frame.
        complete: frames as they were read → frames for tables and figures, for example with the
            paper's names.
        data_tables: files of ``data stats`` that the study has, counted in the dialogues.
        reference: file of ``data reference``; empty if the study has none.
        dialogue_files: files that packs include because they need the dialogues, in addition to
            frames with ``from_dialogues``.
        tables: tables that a study can have.
        figures: figures that a study can have.
        captions: folder in ``workflow/report`` with the captions; empty if the declarations have
            them.
        blocks: frames → section → further content, before the section's tables and figures.
        missing: frames → planned runs without a result (with a column ``state``).
        missing_columns: runs without a result → the columns to print.
        facts: frames → provenance of the study, name and value.
        styles: CSS files of the package that the blocks need, as for ``read_package_text``.
        scripts: JavaScript files of the package that the blocks need, as for ``read_package_text``.
        cells: frame whose rows ``explain`` finds without the name of a table, if any.
    """

    question: str
    answer: Callable[[Frames], Sequence[str]]
    frames: tuple[Frame, ...] = ()
    about: tuple[str, ...] = ()
    metadata: Callable[[Collected], Metadata] = common_frames.build_metadata
    complete: Callable[[Frames], Frames] = lambda frames: frames
    data_tables: tuple[str, ...] = ()
    reference: str = ""
    dialogue_files: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    captions: str = ""
    blocks: Callable[[Frames], Mapping[str, Sequence[Block]]] = lambda frames: {}
    missing: Callable[[Frames], pd.DataFrame] = lambda frames: frames["missing"]
    missing_columns: Callable[[pd.DataFrame], Sequence[Column]] = common_blocks.build_common_columns
    facts: Callable[[Frames], Sequence[tuple[str, str]]] = common_blocks.list_facts
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    cells: Cells | None = None

    def read_caption(self, name: str, caption: str) -> str:
        """Return the caption of a table or figure, as in Snakemake's report.

        Args:
            name: name of the file in ``workflow/report``.
            caption: the declared caption; empty if the file has it.
        """
        if caption or not self.captions:
            return caption
        folder = files("tasktransfer").joinpath("workflow", "report", self.captions)
        return " ".join(folder.joinpath(f"{name}.rst").read_text("utf-8").split())
