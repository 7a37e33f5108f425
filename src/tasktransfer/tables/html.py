"""Frames to tables of an HTML page: every cell a text, every column a kind.

``tables.html.j2`` beside this file shows them: a page imports its macros, see ``environment``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tasktransfer.tables.columns import Column, Head
from tasktransfer.tables.numbers import DASH
from tasktransfer.tables.printed import Layout


@dataclass(frozen=True)
class HtmlTable:
    """``caption`` and ``note`` are plain text. ``blocks`` are rows of texts that belong together;
    ``grouped`` sets them apart by rules, in place of rows. The first ``keys`` cells of a row name
    it. ``folded`` tables are closed until a reader opens them. ``untold``: the sentence in place of
    a table whose every value is missing; empty where it has one. ``badges`` and ``notes``: marks of
    the study, and what they mean. ``explain``: of each block's cells, what a command that traces
    it is given; None: they have no such."""

    name: str
    title: str
    caption: str
    heads: Sequence[Head]
    blocks: Sequence[Sequence[Sequence[str]]]
    keys: int = 1
    folded: bool = False
    grouped: bool = False
    note: str = ""
    untold: str = ""
    badges: str = ""
    notes: Sequence[str] = ()
    explain: Sequence[Sequence[str]] | None = None

    @property
    def count(self) -> int:
        """Number of rows."""
        return sum(len(block) for block in self.blocks)


def build(
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
    """Every row of a frame as texts.

    Args:
        keys: how many of the first columns name a row.
        needs: what a study must have for this table to have a value: a table of dashes says so
            instead. A column of dashes is left out, and the note names it.
    """
    rows = [[column.show(row) for column in columns] for row in records(frame)]
    filled = [n for n in range(len(columns)) if any(row[n] != DASH for row in rows)]
    values = [n for n in filled if n >= keys and not columns[n].counts]
    untold = untold_text(needs) if rows and not values else ""
    kept = [n for n in range(len(columns)) if n < keys or n in filled or not rows]
    lost = dict.fromkeys(columns[n].head.label for n in range(len(columns)) if n not in kept)
    if lost:
        note = f"{note} Left out, as it has no value in this study: {', '.join(lost)}.".strip()
    return HtmlTable(
        name,
        title,
        caption,
        [columns[n].head for n in kept],
        [[[row[n] for n in kept] for row in rows]],
        keys,
        folded,
        note=note,
        untold=untold,
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
    untold: str = "",
    explain: Sequence[Sequence[str]] | None = None,
) -> HtmlTable:
    """A printed table's layout for a page, line by line as Markdown and LaTeX have it."""
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
        untold=untold,
        badges=badges,
        notes=notes,
        explain=explain,
    )


def untold_text(needs: str) -> str:
    """The sentence in place of a table without a single value."""
    why = f"it takes {needs}" if needs else "every value is missing"
    return f"Cannot be told from this study: {why}."


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame's rows as mappings from column to value."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def environment(folder: Path) -> Environment:
    """What renders the templates of a folder: values are escaped, an undefined one is an error."""
    return Environment(
        loader=FileSystemLoader([folder, Path(__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
