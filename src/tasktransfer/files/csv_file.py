"""The strict reader of all CSV and TSV files of users.

The header and the rows determine the dialect. The separator is a comma, semicolon, tab or bar.
Quotation marks enclose cells (RFC 4180: a text with a separator, a line end or a quotation mark is
enclosed, and quotation marks in it are doubled). In a file with tabs they may be plain characters,
if the rows cannot be read otherwise. A file is scanned once before its first row is returned, so
that no row is read in a dialect which a later row contradicts. A file that is ambiguous or not
readable raises DataError with line, column, dialect and remedy. Standard library only.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from tasktransfer.errors import DataError, format_location, format_problem, format_quantity
from tasktransfer.files.csv_columns import Columns, find_separator
from tasktransfer.files.csv_records import (
    QUOTE,
    BrokenError,
    Dialect,
    Record,
    read_records,
    split_leniently,
)
from tasktransfer.files.untrusted import TextLines, format_numbers

ENOUGH_ROWS = 1000
"""Number of rows after which the columns' profiles are reliable."""
SUSPECT_LINES, MAX_SUSPECT_SIZE = 20, 20 * 2**20
"""Maximum number of lines of a suspect record to check, and of characters of waiting records."""
_ESCAPED = re.compile(r'"[^"]*(?:""|\\").*"', re.DOTALL)
"""An enclosed cell that contains escaped quotation marks."""


@dataclass(frozen=True)
class CsvFile:
    """A scanned file.

    Attributes:
        columns: names in the header, in order.
        places: positions of the columns in a record of ``width`` cells.
        header_line: line number of the header.
        is_plain: True if the header alone determines the dialect: its most frequent separator is
            that of all rows, quotation marks enclose cells, and every column has a name.
        notes: notes for the user about the way the file is read, its dialect first.
    """

    path: Path
    dialect: Dialect
    columns: tuple[str, ...]
    places: tuple[int, ...]
    width: int
    header_line: int
    is_plain: bool
    notes: tuple[str, ...]

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line and the cells of each row, skipping empty rows.

        Raises:
            DataError: the file has changed since it was scanned, and cannot be read.
        """
        lines = TextLines(self.path, "")
        try:
            records = _read_records(lines, self.dialect, self.header_line)
            next(records, None)
            for record in records:
                cells = record.cells
                if len(cells) != self.width:
                    where = format_location(self.path, record.line)
                    raise DataError(
                        f"{where}: The file changed while it was read. Run the command again."
                    )
                if any(cells):
                    named = len(self.places) < self.width
                    yield record.line, [cells[i] for i in self.places] if named else cells
        except BrokenError as error:
            raise _build_csv_error(self.path, self.dialect, error) from None


def open_csv(path: Path) -> CsvFile:
    """Scan a CSV or TSV file, and determine its dialect.

    Raises:
        DataError: the file cannot be read, has no header, or its rows do not fit the header; names
            line, column, dialect and remedy.
    """
    try:
        state = path.stat()
        key = (state.st_ino, state.st_size, state.st_mtime_ns)
    except (OSError, ValueError):
        key = (0, 0, 0)  # opening the file raises the right error
    return _open_csv(path, key)


@lru_cache(maxsize=32)
def _open_csv(path: Path, _state: tuple[int, int, int]) -> CsvFile:
    separator, header_line = find_separator(path)
    enclosing = _Scan(path, Dialect(separator, has_quotes=True), header_line)
    if enclosing.is_sound:
        return enclosing.build_file()
    if separator == "\t" and (enclosing.quotes or enclosing.broken):
        literal = _Scan(path, Dialect(separator, has_quotes=False), header_line)
        if literal.is_sound and literal.can_be_literal:
            note = (
                f"{path}: Quotation marks are read as text, because as marks around cells they "
                f"contradict the rows ({enclosing.contradiction})."
            )
            return literal.build_file(note)
    raise enclosing.build_error()


class _Scan:
    """The result of scanning a file in one dialect."""

    def __init__(self, path: Path, dialect: Dialect, header_line: int) -> None:
        self.path, self.dialect, self.header_line = path, dialect, header_line
        self.lines = TextLines(path, "")
        self.header, self.header_text = list[str](), ""
        self.columns = Columns([])
        self.broken: BrokenError | None = None
        self.rows, self.quotes, self.escaped = 0, 0, 0
        self.wrong, self.joined, self.repeated, self.several_lines = (_Places() for _ in range(4))
        self.widths: set[int] = set()
        self.begin_enclosed, self.end_enclosed = True, True
        self.suspects, self.suspect_size = list[Record](), 0
        try:
            for record in _read_records(self.lines, dialect, header_line):
                self._add(record)
        except BrokenError as error:
            self.broken = error
        for record in self.suspects:
            if self._has_joined_rows(record):
                self.joined.add(record.line)

    def _add(self, record: Record) -> None:
        cells, line = record.cells, record.line
        is_one_line = len(record.lines) == 1
        quotes = record.lines[0].count(QUOTE) if is_one_line else 2
        self.quotes += quotes
        if is_one_line and (self.begin_enclosed or self.end_enclosed):
            self.begin_enclosed = self.begin_enclosed and record.lines[0].startswith(QUOTE)
            self.end_enclosed = self.end_enclosed and record.lines[0].endswith(QUOTE)
        if not self.header:
            self.header, self.columns, self.header_line = cells, Columns(cells), line
            self.header_text = record.lines[0]
            self.escaped += 0 if self.dialect.has_quotes else quotes
        elif len(cells) != len(self.header):
            self.wrong.add(line)
            self.widths.add(len(cells))
        elif not any(cells):
            self.lines.count_empty_line(line)
        elif cells == self.header and len(cells) > 1:
            self.repeated.add(line)
        else:
            self.rows += 1
            self.columns.add(cells, is_sample=is_one_line)
            if not is_one_line:
                self.several_lines.add(line)
                self._check_stray_quotes(record)
            elif quotes and not self.dialect.has_quotes:
                self.escaped += sum(map(bool, map(_ESCAPED.fullmatch, cells)))

    def _check_stray_quotes(self, record: Record) -> None:
        """Check whether stray quotation marks have joined rows.

        The check is postponed if too few rows are known.
        """
        separator, width = self.dialect.separator, len(self.header)
        if width < 2 or any(text.count(separator) < width - 1 for text in record.lines):
            return
        few = record._replace(lines=[*record.lines[:SUSPECT_LINES], record.lines[-1]])
        self.suspect_size += sum(map(len, few.lines))
        if self.rows < ENOUGH_ROWS and self.suspect_size < MAX_SUSPECT_SIZE:
            self.suspects.append(few)
        elif self._has_joined_rows(few):
            self.joined.add(few.line)

    def _has_joined_rows(self, record: Record) -> bool:
        """Return whether each line of a record looks like a row."""
        lines, separator = record.lines, self.dialect.separator
        if self.begin_enclosed and not all(text.startswith(QUOTE) for text in lines[1:]):
            return False
        if self.end_enclosed and not all(text.endswith(QUOTE) for text in lines[:-1]):
            return False
        return self.columns.are_rows([split_leniently(t, separator) for t in lines], separator)

    @property
    def is_sound(self) -> bool:
        return self.broken is None and not self.wrong.count and not self.joined.count

    @property
    def can_be_literal(self) -> bool:
        """True if no cell suggests that quotation marks enclose cells."""
        return not self.escaped and not self.columns.has_quoted_labels()

    @property
    def contradiction(self) -> str:
        """Short description of the dialect's problem."""
        if self.broken is not None:
            return f"line {self.broken.line}, column {self.broken.column}: {self.broken.problem}"
        if self.wrong.count:
            return f"line {self.wrong.first[0]} has {min(self.widths)} cells"
        return f"line {self.joined.first[0]} would take the rows below it into one cell"

    def build_error(self) -> DataError:
        """Return an error with line, dialect and remedy."""
        if self.wrong.count and (self.broken is None or self.wrong.first[0] <= self.broken.line):
            return self._build_width_error()
        if self.broken is not None:
            return _build_csv_error(self.path, self.dialect, self.broken)
        return DataError(
            f"{format_location(self.path, min(self.joined.first))}: Two quotation marks enclose "
            f"what looks like several rows ({self.dialect}). Remove or double them. If they are "
            "right, write the file as JSON lines: "
            f"{_format_conversion_command(self.path, self.dialect)}"
        )

    def _build_width_error(self) -> DataError:
        separator, width = self.dialect.separator, len(self.header)
        found = " or ".join(map(str, sorted(self.widths)[:3]))
        others = f" (lines {self.wrong})" if self.wrong.count > 1 else ""
        shown = {"\t": "a tab"}.get(separator, repr(separator))
        remedy = f"Put texts with {shown} in quotes"
        if self.widths == {width + 1} and not self.rows:
            remedy = (
                "Give the first column a name if it numbers the rows, or put texts with "
                f"{shown} in quotes"
            )
        return DataError(
            f"{format_location(self.path, self.wrong.first[0])}{others}: The line has {found} "
            f"column{'' if found == '1' else 's'}, but line {self.header_line} names {width} "
            f"({', '.join(self.columns.header)!r:.60}; {self.dialect}). {remedy}."
        )

    def build_file(self, note: str = "") -> CsvFile:
        """Return the file as read in this dialect.

        Raises:
            DataError: the header does not name columns, or is missing.
        """
        index = self.columns.find_index_column()
        passed = {*self.columns.find_empty_columns(), *(() if index is None else (index,))}
        places = tuple(i for i in range(len(self.header)) if i not in passed)
        names = tuple(self.columns.header[i] for i in places)
        self._check_header(names)
        notes = [
            f"{self.path}: The file is read as CSV with {self.dialect}. Line {self.header_line} "
            f"names {format_quantity(len(names), 'column')}, and "
            f"{format_quantity(self.rows, 'row')} follow{'s' if self.rows == 1 else ''}.",
            *([note] if note else []),
            *self._list_notes(index, passed),
            *self.lines.list_notes(),
        ]
        return CsvFile(
            self.path,
            self.dialect,
            names,
            places,
            len(self.header),
            self.header_line,
            not passed and self.dialect == Dialect(self._guess_header_separator(), has_quotes=True),
            tuple(notes),
        )

    def _guess_header_separator(self) -> str:
        return max((",", ";", "\t"), key=self.header_text.count)

    def _check_header(self, names: tuple[str, ...]) -> None:
        location = format_location(self.path, self.header_line)
        listed = f"{', '.join(self.columns.header)!r:.80}"
        if not self.header:
            raise DataError(
                f"{location}: The file is empty, so it has no header. Fetch the file again."
            )
        if not names:
            raise DataError(
                f"{location}: No column has a name. Write the names of the columns on the "
                "first line."
            )
        for number, name in enumerate(names):
            if not name:
                raise DataError(
                    f"{location}: One of the columns {listed} has an empty name. Give every column "
                    "a name."
                )
            if name in names[:number]:
                raise DataError(
                    f"{location}: Two columns have the name {name!r}. Rename one of the two "
                    "columns."
                )
        if self.repeated.count:
            raise DataError(
                f"{format_location(self.path, self.repeated.first[0])}: The line repeats the "
                f"header of line {self.header_line}, perhaps because files were concatenated. "
                "Remove this line."
            )
        if (value := self.columns.find_data_in_header()) is not None:
            raise DataError(
                f"{location}: The line looks like data instead of a header, because {value!r:.60} "
                "is also in the column below it. Add a header line with the names of the "
                "columns, or rename that column."
            )

    def _list_notes(self, index: int | None, passed: set[int]) -> Iterator[str]:
        """Yield notes for the user on skipped parts and on how rows are read.

        Args:
            index: number of the column that numbers the rows, if there is one.
            passed: numbers of the columns that are skipped.
        """
        if index is not None:
            yield (
                f"{self.path}: The first column has no name and numbers the rows, like an index "
                "that pandas writes. It is skipped."
            )
        if empty := len(passed - {index}):
            yield f"{self.path}: Empty columns without a name are skipped ({empty})."
        for name in self.columns.find_long_names()[:1]:
            yield (
                f"{format_location(self.path, self.header_line)}: {name!r:.60} is read as the "
                "name of a column. If it is data, put a line with names before it."
            )
        if self.several_lines.count:
            yield (
                f"{self.path}: {self.several_lines.count:,} rows have line ends within quotation "
                f"marks (lines {self.several_lines}). Each is read as one text."
            )


@dataclass
class _Places:
    """Line numbers of one kind: their count, and the first five."""

    count: int = 0
    first: list[int] = field(default_factory=list)

    def add(self, line: int) -> None:
        self.count += 1
        if len(self.first) < 5:
            self.first.append(line)

    def __str__(self) -> str:
        return format_numbers(self.first, self.count)


def _read_records(lines: TextLines, dialect: Dialect, header_line: int) -> Iterator[Record]:
    """Yield the records from a given line, counting and skipping empty lines."""
    for record in read_records((line for line in lines if line[0] >= header_line), dialect):
        if record.cells:
            yield record
        else:
            lines.count_empty_line(record.line)


def _build_csv_error(path: Path, dialect: Dialect, error: BrokenError) -> DataError:
    location = format_location(path, error.line, error.column)
    return DataError(format_problem(location, f"{error.problem} ({dialect})", error.remedy))


def _format_conversion_command(path: Path, dialect: Dialect) -> str:
    """Format the command that converts a file to JSON lines."""
    code = (
        f"import csv, json; rows = csv.DictReader(open({str(path)!r}, newline='', "
        f"encoding='utf-8-sig'), delimiter={dialect.separator!r}); "
        f"open({str(path.with_suffix('.jsonl'))!r}, 'w').writelines(json.dumps(r) + '\\n' "
        "for r in rows)"
    )
    return f"python -c {shlex.quote(code)}"
