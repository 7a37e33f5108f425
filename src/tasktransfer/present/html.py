"""Tables of an HTML page with a text for every cell, and the texts and files of a page.

The macros in ``tables.html.j2`` render the tables; see ``create_environment``.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tasktransfer.files import replace_file
from tasktransfer.present.columns import Column, Head
from tasktransfer.present.numbers import DASH
from tasktransfer.present.printed import Layout


@dataclass(frozen=True)
class HtmlTable:
    """A table of an HTML page.

    Args:
        name: name of the table, and its anchor.
        title: title of the table.
        caption: plain text.
        heads: the columns' names.
        blocks: groups of rows of texts.
        keys: number of the first cells that name a row.
        folded: true if the table is collapsed.
        grouped: true to separate groups of rows by rules, instead of all rows.
        note: plain text below the table.
        absence: sentence that replaces a table without values; empty if it has values.
        badges: marks of the study.
        notes: explanations of the marks, and further notes.
        files: (label, name, content as a data URI) of the files that the page offers.
        explain: for each block's cells, the arguments of ``tasktransfer explain``; None if cells
            cannot be explained.
    """

    name: str
    title: str
    caption: str
    heads: Sequence[Head]
    blocks: Sequence[Sequence[Sequence[str]]]
    keys: int = 1
    folded: bool = False
    grouped: bool = False
    note: str = ""
    absence: str = ""
    badges: str = ""
    notes: Sequence[str] = ()
    explain: Sequence[Sequence[str]] | None = None
    files: Sequence[tuple[str, str, str]] = ()

    @property
    def count(self) -> int:
        """Number of rows in the table."""
        return sum(len(block) for block in self.blocks)


def build_table(
    name: str,
    title: str,
    caption: str,
    frame: pd.DataFrame,
    columns: Sequence[Column],
    *,
    keys: int = 1,
    folded: bool = False,
    note: str = "",
    needs: str = "",
) -> HtmlTable:
    """Return an HTML table with one line per row of the frame.

    Columns without any value are left out, and the note names them.

    Args:
        name: name of the table.
        title: title of the table.
        caption: plain text.
        frame: the rows.
        columns: the columns.
        keys: number of the first columns that name a row.
        folded: true if the table is collapsed.
        note: plain text below the table.
        needs: requirement for the table to have values, which is printed if it has none.
    """
    rows = [[column.show(row) for column in columns] for row in to_records(frame)]
    filled = [n for n in range(len(columns)) if any(row[n] != DASH for row in rows)]
    values = [n for n in filled if n >= keys and not columns[n].counts]
    absence = explain_missing_values(needs) if rows and not values else ""
    kept = [n for n in range(len(columns)) if n < keys or n in filled or not rows]
    lost = dict.fromkeys(columns[n].head.label for n in range(len(columns)) if n not in kept)
    if lost:
        names = ", ".join(f"“{label}”" for label in lost)
        note = f"{note} The table omits columns that have no values in this study: {names}.".strip()
    return HtmlTable(
        name,
        title,
        caption,
        [columns[n].head for n in kept],
        [[[row[n] for n in kept] for row in rows]],
        keys,
        folded,
        note=note,
        absence=absence,
    )


def as_html(
    name: str,
    title: str,
    caption: str,
    layout: Layout,
    *,
    badges: str = "",
    notes: Sequence[str] = (),
    folded: bool = False,
    absence: str = "",
    explain: Sequence[Sequence[str]] | None = None,
) -> HtmlTable:
    """Convert a printed table's layout to an HTML table, line by line."""
    entries = [entry for block in layout.blocks for entry in block]
    return HtmlTable(
        name,
        title,
        caption,
        [
            Head(label.replace("\n", " "), "number" if n >= layout.numbers else "word")
            for n, label in enumerate(layout.head)
        ],
        entries,
        keys=0,
        folded=folded,
        grouped=any(len(entry) > 1 for entry in entries),
        absence=absence,
        badges=badges,
        notes=notes,
        explain=explain,
    )


def explain_missing_values(needs: str) -> str:
    """Return the sentence that is shown instead of a table without values."""
    why = f"it requires {needs}" if needs else "every value is missing"
    return f"This table is not available in this study, because {why}."


def to_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Convert a frame to one mapping from column to value per row."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def create_environment(folder: Path, shorts: Mapping[str, str] | None = None) -> Environment:
    """Create the Jinja environment for a folder of templates, with escaped values.

    ``shorts`` has short names, which replace words of tables; the full names are tooltips.
    """
    environment = Environment(
        loader=FileSystemLoader([folder, Path(__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.globals["shorts"] = dict(shorts or {})
    return environment


PAGE = Path(__file__).parent / "page"
"""Folder of the page's own files."""


def read_package_text(name: str) -> str:
    """Read a text file of the package.

    Args:
        name: name of a file in ``PAGE``, or a path relative to the package, such as
            ``designs/transfer/report/heatmap.js``.
    """
    path = PAGE / name
    return (path if path.exists() else PAGE.parents[1] / name).read_text(encoding="utf-8")


def escape_json(value: Any) -> Markup:
    """Escape JSON so that it cannot end the script element that contains it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def encode_data_uri(text: str, kind: str) -> str:
    """Return a text as a base64 data URI with the media type ``kind``."""
    return f"data:{kind};base64,{base64.b64encode(text.encode('utf-8')).decode('ascii')}"


def hash_text(text: str) -> str:
    """Return the hash of a style or script for the content security policy."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def write_fragment(path: Path, table: HtmlTable) -> Path:
    """Write a single table as an HTML page, atomically, and return its path."""
    template = create_environment(PAGE).get_template("fragment.html.j2")
    style = read_package_text("page.css")
    text = template.render(table=table, style=Markup(style), style_hash=hash_text(style))
    with replace_file(path) as part:
        part.write_text(text, encoding="utf-8")
    return path
