"""Reader of one prediction file: from bytes to ids and values with their line numbers.

Accepted, so that the toolkit's own files can be read:

- LF, CRLF or bare CR line ends; a last line without one; empty lines (a warning unless at the end)
- columns in quotes or not; quotes inside a text that does not begin with one
- commas in a text or list that is not in quotes: all after the first comma is the prediction
  (a warning for texts, since other CSV readers see more columns)
- a text that begins with a quote and never ends it (a warning): kept unchanged. A quoted text may
  continue over several lines; a line that begins with an id of the task always begins a row.
- a UTF-8 byte order mark, and spaces around an id (warnings)

Not accepted: other encodings, NUL bytes, a header, separators other than the comma.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from tasktransfer.designs.challenge.findings import Findings, quote_excerpt
from tasktransfer.designs.challenge.format import ValueKind
from tasktransfer.files.csv_records import BrokenError, Dialect, read_records

MAX_LINES_OF_ROW = 50
"""Maximum number of lines of one quoted text."""

_SURROGATE = re.compile("[\udc80-\udcff]")
_ENCODINGS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_DIALECT = Dialect(",", has_quotes=True, has_blanks=True)
_BOM = b"\xef\xbb\xbf"
_PECULIARITIES = {
    "empty-line": "The line is empty and is ignored.",
    "unquoted-comma": "The text has a comma outside quotation marks. Everything after the id is "
    "read as the text, but other CSV readers may split it. Put the text in quotation marks.",
    "stray-quote": "The text begins with a quotation mark without a matching one at its end, and "
    "is read unchanged. Put the text in quotation marks, and double those inside.",
    "id-spaces": "The id has spaces around it, which are ignored. Remove the spaces.",
}
"""Accepted problems that give a warning: kind of finding → message about one line."""


@dataclass(slots=True)
class Rows:
    """Ids, values and line numbers (from 1) of the rows of a file, in its order.

    A value is None if the line is faulty, which is already reported.
    """

    ids: Sequence[str]
    values: Sequence[str | None]
    lines: Sequence[int]


def read_rows(
    data: bytes, kind: ValueKind, ids: Container[str], file: str, findings: Findings
) -> Rows | None:
    """Read the rows of a prediction file, or return None if it cannot be split into rows.

    Args:
        data: the file's bytes.
        kind: the type of values in the second column.
        ids: the expected ids.
        file: the file's name in messages.
        findings: receives errors and warnings, each with its line.
    """
    text = _decode_text(data, file, findings)
    if text is None:
        return None
    if not text.strip():
        text = "The file is empty. Write one row for every instance."
        findings.add_error(file, None, "empty-file", text)
        return None
    text = text.replace("\r\n", "\n")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    lines = text.rstrip("\n").split("\n")
    for separator, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if "," not in lines[0] and separator in lines[0]:
            message = f"The line has {name} between its columns. Separate the columns by a comma."
            findings.add_error(file, 1, "separator", message)
            return None
    return (
        _read_plain_rows(text, lines, ids) or _LineReader(lines, kind, ids, file, findings).read()
    )


def _decode_text(data: bytes, file: str, findings: Findings) -> str | None:
    """Decode the text, with bytes that are not UTF-8 as surrogates."""
    for mark, name in _ENCODINGS:
        if data.startswith(mark):
            findings.add_error(
                file, 1, "encoding", f"The file is encoded in {name}. Save the file as UTF-8."
            )
            return None
    if data.count(b"\0") > len(data) // 4:
        findings.add_error(
            file,
            1,
            "encoding",
            "The file is not UTF-8 text (UTF-16 or binary?). Save the file as UTF-8.",
        )
        return None
    if data.startswith(_BOM):
        text = "The file begins with a byte order mark. Save the file as UTF-8 without this mark."
        findings.add_warning(file, 1, "bom", text)
    return data.removeprefix(_BOM).decode("utf-8", "surrogateescape")


def _read_plain_rows(text: str, lines: list[str], ids: Container[str]) -> Rows | None:
    """Return the rows if every line is a known ID, a comma and a value, otherwise None.

    This takes a tenth of the time of ``_LineReader``.
    """
    if "\r" in text or "\0" in text or (not text.isascii() and _SURROGATE.search(text)):
        return None
    try:
        rows = list(csv.reader(lines, strict=True))
    except csv.Error:
        return None
    if len(rows) != len(lines) or any(len(row) != 2 for row in rows):
        return None
    names, values = map(list, zip(*rows, strict=True))
    if not all(map(ids.__contains__, names)):
        return None
    return Rows(names, values, range(1, len(lines) + 1))


@dataclass(slots=True)
class _LineReader:
    """Reader that goes line by line and reports the problems of each line."""

    lines: list[str]
    kind: ValueKind
    ids: Container[str]
    file: str
    findings: Findings
    peculiar: dict[str, list[int]] = field(
        default_factory=lambda: {kind: [] for kind in _PECULIARITIES}
    )

    def read(self) -> Rows:
        """Return the rows of all lines, with None for faulty values."""
        rows: list[tuple[str, str | None, int]] = []
        column = 0
        while column < len(self.lines):
            line, number, taken = self.lines[column], column + 1, 1
            if not line.strip():
                self.peculiar["empty-line"].append(number)
            elif problem := _find_bad_characters(line):
                self.findings.add_error(self.file, number, "encoding", problem)
                rows.append((self._clean_id(line.partition(",")[0], number), None, number))
            else:
                columns, whole, taken = self._split_row(column)
                value = self._get_value(columns, whole, number)
                rows.append((self._clean_id(columns[0], number), value, number))
            column += taken
        for kind, numbers in self.peculiar.items():
            self.findings.add_line_warning(self.file, kind, _PECULIARITIES[kind], numbers)
        return Rows([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])

    def _split_row(self, column: int) -> tuple[list[str], str, int]:
        """Return the columns, text and number of lines of the row that begins at ``column``."""
        line = whole = self.lines[column]
        if '"' not in line:
            return line.split(","), line, 1
        for taken in range(1, MAX_LINES_OF_ROW + 1):
            with suppress(BrokenError):
                return next(read_records([(column + 1, whole)], _DIALECT)).cells, whole, taken
            following = self.lines[column + taken : column + taken + 1]
            if not following or self._is_row_start(following[0]):
                break
            whole += "\n" + following[0]
        self.peculiar["stray-quote"].append(column + 1)
        return line.split(","), line, 1

    def _is_row_start(self, line: str) -> bool:
        name, comma, _ = line.partition(",")
        return bool(comma) and name.strip().strip('"') in self.ids

    def _get_value(self, columns: list[str], whole: str, number: int) -> str | None:
        """Return the second column, or all text after the ID if the row has more than two columns.

        None if the row has the wrong number of columns, which is reported.
        """
        if len(columns) == 2:
            return columns[1]
        if len(columns) == 1 or self.kind == "integer":
            count = f"{len(columns)} columns"
            if len(columns) == 1:
                count = f"one column, {quote_excerpt(columns[0])}"
            text = f"The row has {count}. Write two, id,prediction."
            self.findings.add_error(self.file, number, "columns", text)
            return None
        if self.kind == "string":
            self.peculiar["unquoted-comma"].append(number)
        quoted_id = whole.startswith('"')
        return ",".join(columns[1:]) if quoted_id else whole.partition(",")[2]

    def _clean_id(self, name: str, number: int) -> str:
        bare = name.strip()
        if name not in self.ids and bare in self.ids:
            self.peculiar["id-spaces"].append(number)
            return bare
        return name


def _find_bad_characters(line: str) -> str | None:
    """Return a message about a byte or character that is not allowed in a line, or None."""
    surrogate = _SURROGATE.search(line)
    if surrogate:
        byte = ord(surrogate.group()) - 0xDC00
        return (
            f"The line contains the byte 0x{byte:02x}, which is not UTF-8 (in Latin-1 it is "
            f"{quote_excerpt(chr(byte))}). Save the file as UTF-8."
        )
    if "\0" in line:
        return (
            "The line contains a NUL byte, so the file is damaged or not UTF-8 text. Save the "
            "file as UTF-8."
        )
    return None
