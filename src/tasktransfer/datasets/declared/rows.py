"""Rows of a file as a stream, whose memory use does not depend on the size of the file.

This package reads text files without a library. A library that guesses types turns texts
into dates and ``007`` into 7, treats a path with brackets as a pattern, and needs a writable cache
(docs/decisions/0038-files-are-read-without-datasets.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tasktransfer.datasets.declared.files import DataFile
from tasktransfer.datasets.declared.json_rows import has_single_value, read_json_rows
from tasktransfer.datasets.declared.row_fields import FIX_REMEDY, SourceRow, build_row
from tasktransfer.errors import DataError
from tasktransfer.files import json_text
from tasktransfer.files.csv_file import open_csv
from tasktransfer.files.fields import Location
from tasktransfer.files.untrusted import TextLines

MAX_BROKEN_LINES = 1000
"""Maximum number of broken JSON lines that are skipped before the reader stops."""


def read_rows(
    file: DataFile, notes: list[str] | None = None, problems: list[str] | None = None
) -> Iterator[SourceRow]:
    """Yield the rows of a file in order.

    Args:
        file: the file.
        notes: list to which notes about the reading of the file are added, at the latest after its
            last row.
        problems: list to which problems of JSON lines are added. These lines are then skipped.
            None to raise the first problem.

    Raises:
        DataError: the file cannot be read or is empty, or a row is not an object. The message
            names the line or row.
    """
    notes = [] if notes is None else notes
    if file.format == "jsonl" and not has_single_value(file.path):
        rows = _read_json_lines(file.path, notes, problems)
    elif file.format in ("json", "jsonl"):
        rows = read_json_rows(file.path, notes)
    elif file.format == "csv":
        rows = _read_csv_rows(file.path, notes)
    else:
        rows = _read_table_rows(file, notes)
    is_empty = True
    for row in rows:
        is_empty = False
        yield row
    if is_empty and not problems:
        raise DataError(
            f"{file.path}: The file has no rows. Use a file with dialogues, or remove this file."
        )


def _read_json_lines(
    path: Path, notes: list[str], problems: list[str] | None
) -> Iterator[SourceRow]:
    lines, broken = TextLines(path), 0
    for number, line in lines:
        text = line.strip()
        if not text:
            lines.count_empty_line(number)
            continue
        location = Location(str(path), line=number, remedy="fix the line")
        try:
            row = _parse_line(number, text, location)
        except DataError as error:
            broken += 1
            if problems is None or broken > MAX_BROKEN_LINES:
                raise
            problems.append(str(error))
        else:
            yield row
    notes += lines.list_notes()


def _parse_line(number: int, line: str, location: Location) -> SourceRow:
    try:
        values = json_text.loads(line)
    except ValueError as error:
        raise location.error(
            f"the text is not valid JSON ({error})", _suggest_json_fix(line)
        ) from None
    return build_row(number, values, location)


def _suggest_json_fix(line: str) -> str:
    """Suggest a remedy for a line that is almost JSON, or return "" for other lines."""
    if line.startswith("{") and line.endswith("},"):
        return "remove the comma after the object, or rename a file with a list of objects to .json"
    if line.startswith("{'"):
        return "write the line with json.dumps, because Python's notation of a dict is not JSON"
    return ""


def _read_csv_rows(path: Path, notes: list[str]) -> Iterator[SourceRow]:
    """Yield the rows of a CSV file with cells as texts."""
    file = open_csv(path)
    notes += file.notes
    for line, cells in file.rows():
        values: dict[str, object] = dict(zip(file.columns, cells, strict=True))
        yield SourceRow(line, values, Location(str(path), line=line, remedy=FIX_REMEDY))


def _read_table_rows(file: DataFile, notes: list[str]) -> Iterator[SourceRow]:
    from tasktransfer.datasets.declared import table_rows  # noqa: PLC0415  # pyarrow is slow

    return table_rows.READERS[file.format](file.path, notes)
