"""What a design declares to be shown: its tables, its figures, and the answer to its question.

The Snakefile reads the names of files here, so nothing is imported that it must not: what makes a
frame or draws is named by ``late`` and imported when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from tasktransfer.core.runs import Run
from tasktransfer.results.study import Study
from tasktransfer.tables.columns import Column

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Canvas

    from tasktransfer.present.view import View
    from tasktransfer.tables.html import HtmlTable
    from tasktransfer.tables.metadata import Metadata
    from tasktransfer.tables.printed import Layout

SECTIONS = {
    "answer": "The answer",
    "results": "Results",
    "sure": "How sure",
    "missing": "What is missing, and why",
    "cost": "What it cost",
    "made": "How it was made",
}
"""The sections of a report, in order, with their titles."""

Section = Literal["results", "sure", "cost", "made"]
"""Where a declared table or figure stands."""

TABLE_ENDINGS = ("csv", "md", "tex", "parquet", "html")
FIGURE_ENDINGS = ("png", "pdf")


def always(study: Study) -> bool:
    """Of what every study of a design has."""
    return True


def late(module: str, name: str) -> Callable[..., Any]:
    """A function that is imported when it is called.

    Args:
        module: below the package, as ``designs.probes.printed``.
        name: the function.
    """

    def call(*arguments: Any) -> Any:
        return getattr(import_module(f"tasktransfer.{module}"), name)(*arguments)

    call.__name__, call.__module__ = name, f"tasktransfer.{module}"
    return call


@dataclass(frozen=True, slots=True)
class Listed:
    """A line a row of the frame. Words come first, numbers are aligned to the right.

    ``blocks``: the column whose change draws a rule.
    """

    columns: tuple[Column, ...]
    blocks: str = ""


@dataclass(frozen=True, slots=True)
class Crossed:
    """A line a combination of ``rows``, a column a value of ``across``: as papers print it.

    ``cell`` shows what is where they meet; ``published``, below it, what the paper has there.
    ``order``: the kind of name that ``Metadata.order`` has for the columns (default: ``across``);
    ``heads``: value of ``across`` → title. ``blocks``: the column whose change draws a rule.
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
        title: short, "Table 3".
        make: view → its rows; without any it is not written, and the report says ``nothing``.
        shape: how people see it, or (view, frame) → that layout.
        keys: columns that name a row, by which ``explain`` finds it.
        caption: what it shows, one or two sentences. Empty: the file ``workflow/report/<name>.rst``
            of the design has it, which Snakemake's own report shows too.
        notes: (view, frame) → what else is to be known, each a sentence or two.
        paper: where the published values beside ours are from, "Table 3 of Zhang et al. 2023".
        nothing: why a study has none of it, after "The study".
        planned: whether a study will have it, as far as its plan tells.
        certain: whether it has rows wherever it is planned and everything is there; Snakemake is
            told of these alone.
        cited: no number of the study: a paper's, or of formulas.
        described: → column → meaning, for the Parquet file.
        runs: (row, run) → whether the run is behind the row; default: its columns of the names
            that runs have (method, model, seed, what they are about) agree.
    """

    name: str
    title: str
    make: Callable[[View], pd.DataFrame | None]
    shape: Listed | Crossed | Callable[[View, pd.DataFrame], Layout]
    keys: tuple[str, ...] = ()
    caption: str = ""
    notes: Callable[[View, pd.DataFrame], Sequence[str]] = lambda view, frame: ()
    paper: str = ""
    nothing: str = "has no number for it"
    section: Section = "results"
    folded: bool = False
    planned: Callable[[Study], bool] = always
    certain: bool = True
    cited: bool = False
    described: Callable[[], Mapping[str, str]] = dict
    runs: Callable[[Mapping[str, Any], Run], bool] | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: ``<name>.png`` and ``.pdf``.

    Args:
        title: what is seen, in one short sentence; above the figure.
        draw: view → the figure, or None where there is nothing to show; ``nothing`` says why then.
        reads: the frames that it is made of: it is drawn again when one of them has changed, and
            is handed these and no others.
        part: view → the rows that it is made of, where these are not the whole frames.
        text: name of its file in ``workflow/report``, where several figures share one.
        caption: as of a table.
        planned: as of a table.
        certain: as of a table.
    """

    name: str
    title: str
    draw: Callable[[View], Canvas | None]
    reads: tuple[str, ...]
    caption: str = ""
    nothing: str = "has nothing to draw in it"
    section: Section = "results"
    planned: Callable[[Study], bool] = always
    certain: bool = True
    part: Callable[[View], View] | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """More of a page than tables and figures: a text, facts (name and value), a table made for the
    page alone, or HTML of the package's own (``markupsafe.Markup``)."""

    text: str = ""
    facts: Sequence[tuple[str, str]] = ()
    table: HtmlTable | None = None
    html: str = ""


def _missing(view: View) -> tuple[pd.DataFrame, pd.DataFrame]:
    return view["missing"], view["problems"]


_missing_columns = late("present.page.holes", "common_columns")
_facts = late("present.page.origin", "facts")


@dataclass(frozen=True, slots=True)
class Presentation:
    """Everything that is shown of a study.

    Args:
        question: what the study asks.
        read: study → its frames by name, and what they say of the study.
        answer: view → two or three sentences that the tables bear. Without an effect they claim
            none.
        tables: those that a study can have.
        figures: those that a study can have.
        captions: folder of ``workflow/report`` that has the captions; empty: the declarations have.
        blocks: view → section → what else stands there, before its tables and figures.
        missing: view → runs without a number (``state`` among their columns), damaged records.
        missing_columns: the former → what is told of them.
        facts: view → how the study was made, name and value.
        styles: files of the package that the blocks need, as ``own_text`` takes them.
        scripts: the same.
    """

    question: str
    read: Callable[[Study], tuple[Mapping[str, pd.DataFrame], Metadata]]
    answer: Callable[[View], Sequence[str]]
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    captions: str = ""
    blocks: Callable[[View], Mapping[str, Sequence[Block]]] = lambda view: {}
    missing: Callable[[View], tuple[pd.DataFrame, pd.DataFrame]] = _missing
    missing_columns: Callable[[pd.DataFrame], Sequence[Column]] = _missing_columns
    facts: Callable[[View], Sequence[tuple[str, str]]] = _facts
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
