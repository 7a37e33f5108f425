"""Split the lines of a CSV file into records and cells, strictly in one dialect.

Python's ``csv`` module is not suitable: it limits the size of cells by a setting of the whole
process, and does not report the column of a broken record. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tasktransfer.files.untrusted import MAX_LENGTH

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
QUOTE = '"'
MAX_LINES = 100_000
"""Maximum number of lines of a record."""
MAX_CELLS = 20_000
"""Maximum number of cells of a record."""
_BLANK_BEFORE_QUOTE = re.compile(r' +".*" *', re.DOTALL)


class Dialect(NamedTuple):
    """A dialect of CSV.

    Attributes:
        separator: character between cells.
        has_quotes: True if quotation marks enclose cells, False if they are plain characters.
        has_blanks: True if a cell may be a space and a text in quotation marks, which belong to it.
    """

    separator: str
    has_quotes: bool
    has_blanks: bool = False

    def __str__(self) -> str:
        quotes = "quotation marks enclose cells" if self.has_quotes else "quotation marks are text"
        return f"{SEPARATORS[self.separator]} between cells, {quotes}"


class Record(NamedTuple):
    """A record of a CSV file.

    Attributes:
        line: number of its first line.
        cells: its cells.
        lines: its lines as in the file, without the last line end; several if a cell contains line
            ends.
    """

    line: int
    cells: list[str]
    lines: list[str]


class BrokenError(Exception):
    """The quotation marks of a record contradict the dialect, at ``line`` and ``column`` from 1."""

    def __init__(self, line: int, column: int, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.line, self.column, self.problem, self.remedy = line, column, problem, remedy


def read_records(lines: Iterable[tuple[int, str]], dialect: Dialect) -> Iterator[Record]:
    """Yield the records in lines, where an empty line is a record without cells.

    Raises:
        BrokenError: a quotation mark is at a wrong place, or a record has too many cells.
    """
    separator = dialect.separator
    following = iter(lines)
    for number, line in following:
        text = _strip_line_end(line)
        if not text or (text.isspace() and separator not in text):
            yield Record(number, [], [text])
        elif dialect.has_quotes and QUOTE in text:
            yield _QuotedRecord(number, text, line[len(text) :], dialect).read(following)
        elif text.count(separator) >= MAX_CELLS:
            raise _build_width_error(number)
        else:
            yield Record(number, text.split(separator), [text])


def split_leniently(line: str, separator: str) -> list[str]:
    """Split one line into cells, treating quotation marks that enclose no cell as text."""
    cells, start = list[str](), 0
    cell = re.compile(rf'"((?:[^"]|"")*)"(?={re.escape(separator)}|$)')
    while True:
        if match := cell.match(line, start):
            cells.append(match[1].replace('""', QUOTE))
            end = match.end()
        else:
            end = line.find(separator, start)
            end = len(line) if end < 0 else end
            cells.append(line[start:end])
        if end >= len(line):
            return cells
        start = end + 1


def _build_width_error(line: int) -> BrokenError:
    return BrokenError(
        *(line, 1, f"the row has more than {MAX_CELLS:,} cells"),
        "remove unused columns, or write the dialogues as JSON lines",
    )


def _strip_line_end(line: str) -> str:
    if line.endswith("\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith(("\n", "\r")) else line


class _QuotedRecord:
    """A record with a quotation mark in its first line."""

    def __init__(self, number: int, text: str, end: str, dialect: Dialect) -> None:
        self.first, self.line, self.separator = number, number, dialect.separator
        self.has_blanks = dialect.has_blanks
        self.text, self.end = text, end
        self.lines, self.size = [text], len(text)
        self.cells: list[str] = []

    def read(self, following: Iterator[tuple[int, str]]) -> Record:
        start = 0
        while True:
            if self.text.startswith(QUOTE, start):
                start = self._read_quoted_cell(start, following)
            else:
                start = self._read_plain_cell(start)
            if len(self.cells) > MAX_CELLS:
                raise _build_width_error(self.first)
            if start > len(self.text):
                return Record(self.first, self.cells, self.lines)

    def _read_plain_cell(self, start: int) -> int:
        """Read a cell without enclosing quotes, and return the start of the next cell."""
        end = self.text.find(self.separator, start)
        end = len(self.text) if end < 0 else end
        cell = self.text[start:end]
        if QUOTE in cell and not self.has_blanks and _BLANK_BEFORE_QUOTE.fullmatch(cell):
            raise BrokenError(
                *(
                    self.line,
                    start + 1,
                    "there are blanks before a quotation mark that encloses a cell",
                ),
                "remove the blanks",
            )
        self.cells.append(cell)
        return end + 1

    def _read_quoted_cell(self, start: int, following: Iterator[tuple[int, str]]) -> int:
        """Read a cell in quotes, and return the start of the next cell."""
        line, parts, at = self.line, list[str](), start + 1
        while True:
            end = self.text.find(QUOTE, at)
            if end < 0:
                parts += [self.text[at:], self.end]
                self._read_next_line(following, line, start + 1)
                at = 0
            elif self.text.startswith(QUOTE, end + 1):
                parts.append(self.text[at : end + 1])
                at = end + 2
            else:
                parts.append(self.text[at:end])
                break
        after = end + 1
        if after < len(self.text) and self.text[after] != self.separator:
            raise self._build_quote_error(end, line, start + 1)
        self.cells.append("".join(parts))
        return after + 1

    def _read_next_line(self, following: Iterator[tuple[int, str]], line: int, column: int) -> None:
        number, text = next(following, (0, ""))
        if not number or self.size > MAX_LENGTH or len(self.lines) == MAX_LINES:
            what = "never closed" if not number else f"not closed for {len(self.lines):,} lines"
            raise BrokenError(
                *(line, column, f"a quotation mark is {what}"),
                "close it, and double quotation marks within a text",
            )
        self.line, self.text = number, _strip_line_end(text)
        self.end = text[len(self.text) :]
        self.lines.append(self.text)
        self.size += len(text)

    def _build_quote_error(self, place: int, line: int, column: int) -> BrokenError:
        opened = f"the cell begins in line {line}, column {column}"
        after = f"{self.text[place + 1]!r} follows it, instead of {self.separator!r} or a line end"
        if self.text[place - 1 : place] == "\\":
            return BrokenError(
                *(
                    self.line,
                    place + 1,
                    f"a quotation mark after a backslash ends a cell ({after})",
                ),
                'double quotation marks within a text ("") instead of a backslash before them',
            )
        return BrokenError(
            *(
                self.line,
                place + 1,
                f"a quotation mark ends a cell within a text ({after}; {opened})",
            ),
            "double quotation marks within a text",
        )
