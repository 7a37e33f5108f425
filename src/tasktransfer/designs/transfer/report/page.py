"""The page: everything of a study in one HTML file that needs no network and no server."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from tasktransfer.designs.transfer.collect.results import Results
from tasktransfer.designs.transfer.figures import cell_grid
from tasktransfer.designs.transfer.figures.draw import FIGURES
from tasktransfer.designs.transfer.figures.one_dataset import datasets_of
from tasktransfer.designs.transfer.report.control_tables import control_tables
from tasktransfer.designs.transfer.report.facts import facts
from tasktransfer.designs.transfer.report.first_source import first_sources
from tasktransfer.designs.transfer.report.grid import payload
from tasktransfer.designs.transfer.report.holes import holes, troubles
from tasktransfer.designs.transfer.report.images import inline
from tasktransfer.designs.transfer.report.statistics_tables import (
    agreement_lines,
    statistics_tables,
)
from tasktransfer.designs.transfer.tables.paper_tables import Printed, printed_tables
from tasktransfer.files import replacing
from tasktransfer.tables.html import Head, HtmlTable, environment, untold_text
from tasktransfer.tables.numbers import DASH
from tasktransfer.tables.printed import Layout, Line

HERE = Path(__file__).parent
SCRIPTS = ("heatmap_model.js", "heatmap_words.js", "heatmap.js")
"""In this order: each uses those before it."""
BESIDE = (
    "Text, tables, figures and heatmap are in this file. Links to records and PDFs lead to files "
    "beside this page: they open while the page lies in its results folder."
)
LABELS = {
    "significant": cell_grid.SURVIVES_LABEL,
    "one_training": cell_grid.ONE_TRAINING_LABEL,
    "missing": cell_grid.MISSING_LABEL,
    "not_planned": cell_grid.NOT_PLANNED_LABEL,
}
"""What the marks of the printed heatmap are called; the interactive one has the same."""
_LOST_RUNS = "runs that are missing (the last part of this page names them)"
PAPER_TABLES = ("table1", "table2", "table3", "table6")
"""Shown open; what else is printed is closed until a reader opens it."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure on the page; ``pdf`` is a link, or empty."""

    name: str
    title: str
    caption: str
    source: str
    width: int
    height: int
    pdf: str


def write_report(results: Results, figures: Path, out: Path, *, arguments: str = "") -> Path:
    """Write the report.

    Args:
        results: the study.
        figures: the folder with the figures as PNG; those that are not there are left out.
        out: the file. It belongs into the results folder, where its links to records lead.
        arguments: the command-line options that open the study again (``Study.arguments``).

    Returns:
        ``out``.
    """
    text = render(results, figures, out.parent, arguments=arguments)
    with replacing(out) as part:
        part.write_text(text, encoding="utf-8")
    return out


def render(results: Results, figures: Path, folder: Path, *, arguments: str = "") -> str:
    """The page's text; links are relative to ``folder``."""
    style, script = _own_text("page.css"), "\n".join(map(_own_text, SCRIPTS))
    explain = " ".join(part for part in ("tasktransfer explain", arguments) if part)
    return (
        environment(HERE)
        .get_template("page.html.j2")
        .render(
            title=f"{results.metadata.mark}Task transfer: {results.metadata.study}",
            version=results.metadata.version,
            synthetic=results.metadata.synthetic,
            real=" and ".join(results.metadata.real),
            troubles=troubles(results.tables),
            answer=first_sources(results.statistics.cells, results.tables.runs),
            beside=BESIDE,
            labels=LABELS,
            facts=facts(results),
            data=embedded_json(payload(results, explain)),
            printed=_printed(results),
            agreement=agreement_lines(results.statistics.agreement),
            statistics=[*statistics_tables(results.statistics), *control_tables(results)],
            figures=list(_figures(datasets_of(results), figures, folder)),
            holes=holes(results.tables),
            style=Markup(style),
            script=Markup(script),
            style_hash=_hash(style),
            script_hash=_hash(script),
        )
    )


def embedded_json(value: Any) -> Markup:
    """JSON for a script element: nothing in it can end the element or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _own_text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What the page's security policy knows its own style and script by: nothing else runs."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _printed(results: Results) -> list[HtmlTable]:
    """The paper's tables, line by line as Markdown and LaTeX have them."""
    return [_as_html(table) for table in printed_tables(results)]


def _as_html(table: Printed) -> HtmlTable:
    layout = table.layout
    entries = [entry for block in layout.blocks for entry in block]
    return HtmlTable(
        name=table.name,
        title=table.title,
        caption=table.caption,
        heads=[
            Head(label.replace("\n", " "), "number" if place >= layout.numbers else "word")
            for place, label in enumerate(layout.head)
        ],
        blocks=entries,
        keys=0,
        folded=table.name not in PAPER_TABLES,
        grouped=any(len(entry) > 1 for entry in entries),
        untold=_untold(layout, [line for entry in entries for line in entry]),
    )


def _untold(layout: Layout, lines: list[Line]) -> str:
    """The sentence in place of a table of dashes; "2/5" is a count, and no value."""
    values = [cell for line in lines for cell in line[layout.numbers :] if "/" not in cell]
    return (
        untold_text(_LOST_RUNS) if values and not any(cell.strip(DASH) for cell in values) else ""
    )


def figure_caption(name: str) -> str:
    """What stands below a figure: the text that Snakemake's own report has too."""
    text = files("tasktransfer").joinpath("workflow", "report", f"{name}.rst").read_text("utf-8")
    return " ".join(text.split())


def _figures(datasets: Iterable[str], figures: Path, folder: Path) -> Iterable[Shown]:
    datasets = list(datasets)
    for kind, drawing in FIGURES.items():
        for dataset in datasets:
            path = figures / f"{kind}_{dataset}.png"
            if not path.exists():
                continue
            image = inline(path)
            pdf = path.with_suffix(".pdf")
            yield Shown(
                name=path.stem,
                title=f"{dataset}: {drawing.caption}",
                caption=figure_caption(kind),
                source=image.source,
                width=image.width,
                height=image.height,
                pdf=pdf.relative_to(folder).as_posix()
                if pdf.exists() and pdf.is_relative_to(folder)
                else "",
            )
