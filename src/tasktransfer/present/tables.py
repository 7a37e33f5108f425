"""Declared tables: computed from a study's frames, laid out, and written in five formats.

The formats are CSV, Markdown, LaTeX, Parquet and HTML.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from tasktransfer.files.progress import show_progress
from tasktransfer.present.columns import Row
from tasktransfer.present.declared import (
    TABLE_ENDINGS,
    Analysis,
    FlatTable,
    PivotTable,
    Section,
    Table,
)
from tasktransfer.present.html import (
    HtmlTable,
    as_html,
    encode_data_uri,
    explain_missing_values,
    to_records,
    write_fragment,
)
from tasktransfer.present.marks import format_badges, format_notes, list_marks
from tasktransfer.present.numbers import DASH, is_missing
from tasktransfer.present.printed import (
    Entry,
    Layout,
    format_table_files,
    group_blocks,
    write_table,
)
from tasktransfer.present.published import list_published_notes
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata

Words = tuple[str, ...]
FILES = (("CSV", "csv", "csv"), ("LaTeX", "tex", "plain"), ("Markdown", "md", "markdown"))
"""Label, ending and kind of text of the files that the page offers of each table."""


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A printed table, from which all of its files and the report are written.

    Args:
        name: name of the files.
        title: title of the table.
        caption: description of the table's content.
        badges: marks of the study, in one line.
        notes: numbered notes. The first ``marks`` of them explain the badges.
        frame: the table's rows.
        layout: texts of the cells.
        words: for each entry of the layout, the words by which ``explain`` finds its columns.
        metadata: metadata of the study; None for a table of a paper's numbers.
        section: section of the report.
        folded: true if the table is collapsed on the page.
        described: column → meaning, for the Parquet file.
        marks: number of notes that explain badges.
        absence: sentence that the page prints instead of the table; empty if it has values.
    """

    name: str
    title: str
    caption: str
    badges: str
    notes: Sequence[str]
    frame: pd.DataFrame
    layout: Layout
    words: Sequence[Sequence[Words]]
    metadata: Metadata | None
    section: Section = "results"
    folded: bool = False
    described: Mapping[str, str] = field(default_factory=dict)
    marks: int = 0
    absence: str = ""

    @property
    def text(self) -> str:
        """Badges, caption and notes as text for Markdown and LaTeX."""
        return " ".join(part for part in (self.badges, self.caption, *self.notes) if part)


@dataclass(frozen=True, slots=True)
class AbsentOutput:
    """A table or figure that a study does not have, with a sentence that gives the reason."""

    name: str
    title: str
    why: str
    section: Section


def build_printed_tables(shown: Analysis, frames: Frames) -> list[PrintedTable | AbsentOutput]:
    """Return each declared table, or the reason why the study does not have it."""
    tables = show_progress(shown.tables, "making tables")
    return [build_printed_table(shown, table, frames) for table in tables]


def build_printed_table(
    shown: Analysis, table: Table, frames: Frames
) -> PrintedTable | AbsentOutput:
    """Return a study's declared table, or the reason why the study does not have it."""
    frame = table.make(frames) if table.planned(frames.study) else None
    if frame is None or frame.empty:
        why = f"The table “{table.title}” is not shown, because the study {table.nothing}."
        return AbsentOutput(table.name, table.title, why, table.section)
    frame = frame.reset_index(drop=True)
    shape = table.shape
    if isinstance(shape, PivotTable):
        layout, words = make_crossed_layout(shape, frame, frames.metadata, table.keys)
    else:
        layout = (
            make_listed_layout(shape, frame)
            if isinstance(shape, FlatTable)
            else shape(frames, frame)
        )
        words = [[list_key_values(table.keys, row)] * len(layout.head) for row in to_records(frame)]
    marks = [] if table.cited else list_marks(frames.metadata)
    published_notes = (
        list_published_notes(frame, frames.metadata, table.paper) if table.paper else []
    )
    return PrintedTable(
        table.name,
        table.title,
        shown.read_caption(table.name, table.caption),
        format_badges(marks),
        format_notes(marks, [*published_notes, *table.notes(frames, frame)]),
        frame,
        layout,
        words,
        None if table.cited else frames.metadata,
        table.section,
        table.folded,
        table.described(),
        len(marks),
        "" if _has_values(shape, frame, layout) else explain_missing_values(table.needs),
    )


def list_key_values(keys: Sequence[str], row: Row) -> Words:
    """Return the texts of a row's keys, by which ``explain`` finds the row."""
    return tuple(str(row[key]) for key in keys if not is_missing(row.get(key)) and row[key] != "")


def make_listed_layout(shape: FlatTable, frame: pd.DataFrame) -> Layout:
    """Lay out a frame with one line per row of the frame."""
    columns = shape.columns
    entries = [
        (str(row[shape.blocks]) if shape.blocks else "", (tuple(c.show(row) for c in columns),))
        for row in to_records(frame)
    ]
    kept = _find_filled_columns(columns, [line for _, (line,) in entries])
    shown = [(block, (tuple(line[n] for n in kept),)) for block, (line,) in entries]
    heads = [columns[n].head for n in kept]
    words = next((n for n, head in enumerate(heads) if head.kind == "number"), len(heads))
    return Layout(tuple(head.label for head in heads), words, group_blocks(shown))


def _find_filled_columns(columns: Sequence[Any], lines: Sequence[Sequence[str]]) -> list[int]:
    """Return the indices of columns that contain a value."""
    return [n for n in range(len(columns)) if any(line[n] not in ("", DASH) for line in lines)]


def make_crossed_layout(
    shape: PivotTable, frame: pd.DataFrame, metadata: Metadata, keys: Sequence[str] = ()
) -> tuple[Layout, list[list[Words]]]:
    """Lay out a frame as a matrix, with the paper's line below ours.

    Returns:
        The layout, and the words of each cell (the values of its ``keys``).
    """
    across = metadata.order_names(shape.order or shape.across, map(str, frame[shape.across]))
    rows = to_records(frame)
    names = [tuple(column.show(row) for column in shape.rows) for row in rows]
    groups: dict[Words, dict[str, Row]] = {}
    for name, row in zip(names, rows, strict=True):
        groups.setdefault(name, {}).setdefault(str(row[shape.across]), row)
    beside = shape.published
    theirs = beside is not None and any(beside.show(row) != DASH for row in rows)
    entries: list[tuple[str, Entry]] = []
    words: list[list[Words]] = []
    for name, cells in groups.items():
        ours = [shape.cell.show(cells[a]) if a in cells else DASH for a in across]
        lines = [(*name, *(["ours"] if theirs else []), *ours)]
        paper = [beside.show(cells[a]) if beside and a in cells else DASH for a in across]
        if any(text != DASH for text in paper):
            lines.append((*("" for _ in name), "published", *paper))
        first = next(iter(cells.values()))
        entries.append((str(first[shape.blocks]) if shape.blocks else "", tuple(lines)))
        named = list_key_values([key for key in keys if key != shape.across], first)
        of_cells = (list_key_values(keys, cells[a]) if a in cells else () for a in across)
        words.append([*([named] * (len(name) + theirs)), *of_cells])
    head = (
        *(column.head.label for column in shape.rows),
        *([""] if theirs else []),
        *map(shape.heads, across),
    )
    kept = _find_filled_columns(head, [line for _, entry in entries for line in entry])
    filled = [
        (block, tuple(tuple(line[n] for n in kept) for line in entry)) for block, entry in entries
    ]
    layout = Layout(
        tuple(head[n] for n in kept),
        sum(n < len(shape.rows) + theirs for n in kept),
        group_blocks(filled),
    )
    return layout, [[row[n] for n in kept] for row in words]


def to_html(table: PrintedTable, *, alone: bool = False) -> HtmlTable:
    """Convert a printed table to an HTML table.

    Args:
        table: the table.
        alone: true to include the notes that explain badges, which a page explains only once.
    """
    commands = [[shlex.join((table.name, *w)) if w else "" for w in row] for row in table.words]
    shown = as_html(
        table.name,
        table.title,
        table.caption,
        table.layout,
        badges=table.badges,
        notes=table.notes if alone else table.notes[table.marks :],
        folded=table.folded,
        absence=table.absence,
        explain=commands if any(any(row) for row in table.words) else None,
    )
    return shown if alone else replace(shown, files=_list_files(table))


def _list_files(table: PrintedTable) -> list[tuple[str, str, str]]:
    """Return label, file name and data URI of each file that the page offers for download."""
    texts = format_table_files(
        table.name, table.frame, table.metadata, table.text, title=table.title, layout=table.layout
    )
    return [
        (label, f"{table.name}.{ending}", encode_data_uri(texts[ending], f"text/{kind}"))
        for label, ending, kind in FILES
    ]


def _has_values(shape: Any, frame: pd.DataFrame, layout: Layout) -> bool:
    """Return whether a table contains a value other than counts."""
    if isinstance(shape, FlatTable):
        columns = [c for c in shape.columns if c.head.kind == "number" and not c.counts]
        rows = to_records(frame)
        return not columns or any(c.show(row) != DASH for row in rows for c in columns)
    lines = [line for block in layout.blocks for entry in block for line in entry]
    values = [cell for line in lines for cell in line[layout.numbers :] if "/" not in cell]
    return not values or any(cell.strip(DASH) for cell in values)


def write_tables(tables: Iterable[PrintedTable | AbsentOutput], folder: Path) -> list[Path]:
    """Write every table in all of ``TABLE_ENDINGS``, each file atomically.

    Removes files of tables that the study does not have.

    Returns:
        The written files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for table in tables:
        if isinstance(table, AbsentOutput):
            for ending in TABLE_ENDINGS:
                (folder / f"{table.name}.{ending}").unlink(missing_ok=True)
            continue
        files += write_table(
            folder,
            table.name,
            table.frame,
            table.metadata,
            table.text,
            title=table.title,
            layout=table.layout,
            described=table.described,
        )
        files.append(write_fragment(folder / f"{table.name}.html", to_html(table, alone=True)))
    return files
