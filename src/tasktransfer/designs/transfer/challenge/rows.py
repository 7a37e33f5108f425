"""The rows of one prediction file: bytes in, ids and values with their line numbers out.

What is accepted, so that the toolkit's own files can be read:

- LF, CRLF or bare CR line ends; a last line without one; empty lines (a warning unless at the end)
- columns in quotes or not; quotes inside a text that does not begin with one
- commas in a text or list that is not in quotes: all after the first comma is the prediction
  (a warning for texts, since other CSV readers see more columns)
- a text that begins with a quote and never ends it (a warning): taken as it stands. A quoted text
  may go on over several lines; a line that begins with an id of the task always begins a row.
- a UTF-8 byte order mark, and spaces around an id (warnings)

Not accepted: other encodings, NUL bytes, a header, separators other than the comma.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from tasktransfer.designs.transfer.challenge.findings import Findings, excerpt
from tasktransfer.designs.transfer.challenge.format import ValueKind

MAX_LINES_OF_ROW = 50
"""Most lines that one quoted text may take."""

_HEADER_WORD = re.compile(
    "(instance)?(id|ids|index)|instances?|pred(icted|ictions?|s)?|labels?|answers?|outputs?|values?"
)
_SURROGATE = re.compile("[\udc80-\udcff]")
_ENCODINGS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Rows:
    """Ids, values and line numbers (from 1) of the rows of a file, in its order. A value is None
    where the line is faulty, which is noted already."""

    ids: Sequence[str] = field(default_factory=list)
    values: Sequence[str | None] = field(default_factory=list)
    lines: Sequence[int] = field(default_factory=list)


def read_rows(
    data: bytes, kind: ValueKind, known: Container[str], file: str, findings: Findings
) -> Rows | None:
    """The rows of a prediction file; None if they cannot be told apart at all.

    Args:
        data: the file's bytes.
        kind: what the second column holds.
        known: the ids that the file should have.
        file: how messages name the file.
        findings: where errors and warnings go, each with its line.
    """
    text = _decode(data, file, findings)
    if text is None:
        return None
    if not text.strip():
        findings.error(file, None, "empty-file", "is empty; it needs a row for every instance")
        return None
    text = text.replace("\r\n", "\n")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    lines = text.rstrip("\n").split("\n")
    if _other_separator(lines[0], file, findings):
        return None
    return _plain_rows(text, lines, known) or _Reader(lines, kind, known, file, findings).read()


def _decode(data: bytes, file: str, findings: Findings) -> str | None:
    """The text, with bytes that are not UTF-8 as surrogates."""
    for mark, name in _ENCODINGS:
        if data.startswith(mark):
            findings.error(file, 1, "encoding", f"is {name}; save it as UTF-8")
            return None
    if data.count(b"\0") > len(data) // 4:
        findings.error(file, 1, "encoding", "is no text in UTF-8 (UTF-16 or binary?)")
        return None
    if data.startswith(_BOM):
        findings.warn(file, 1, "bom", "begins with a byte order mark; save it as plain UTF-8")
        data = data.removeprefix(_BOM)
    return data.decode("utf-8", "surrogateescape")


def _other_separator(line: str, file: str, findings: Findings) -> bool:
    for separator, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if "," not in line and separator in line:
            findings.error(file, 1, "separator", f"has {name} between its columns; use a comma")
            return True
    return False


def _plain_rows(text: str, lines: list[str], known: Container[str]) -> Rows | None:
    """The rows where nothing asks for a closer look: a tenth of the time of the reader below."""
    if "\r" in text or "\0" in text or (not text.isascii() and _SURROGATE.search(text)):
        return None
    parts = _one_line_each(lines) if '"' in text else [line.split(",") for line in lines]
    if parts is None or any(len(part) != 2 for part in parts):
        return None
    ids, values = zip(*parts, strict=True)
    if not all(map(known.__contains__, ids)):
        return None
    return Rows(list(ids), list(values), range(1, len(lines) + 1))


def _one_line_each(lines: list[str]) -> list[list[str]] | None:
    """The columns of the lines, unless a quote reaches beyond its line."""
    reader = csv.reader(lines, strict=True)
    try:
        parts = list(reader)
    except csv.Error:
        return None
    return parts if len(parts) == len(lines) else None


@dataclass(slots=True)
class _Tally:
    """How often something accepted was met, and where first."""

    count: int = 0
    first: int = 0

    def add(self, line: int) -> None:
        self.first = self.first or line
        self.count += 1


class _Reader:
    """Reads line by line, and notes what is wrong with each."""

    def __init__(
        self,
        lines: list[str],
        kind: ValueKind,
        known: Container[str],
        file: str,
        findings: Findings,
    ) -> None:
        self.lines, self.kind, self.known = lines, kind, known
        self.file, self.findings = file, findings
        self.ids: list[str] = []
        self.values: list[str | None] = []
        self.numbers: list[int] = []
        self.empty, self.commas, self.quotes, self.spaces = (_Tally() for _ in range(4))

    def read(self) -> Rows:
        place = 0
        while place < len(self.lines):
            place += self._row(place)
        self._warn(self.empty, "empty-line", "empty lines are left aside")
        self._warn(
            self.commas,
            "unquoted-comma",
            "texts hold a comma outside quotes: all after the id is taken; other readers may not",
        )
        self._warn(
            self.quotes, "stray-quote", "texts begin with a quote that does not end them properly"
        )
        self._warn(self.spaces, "id-spaces", "ids have spaces around them")
        return Rows(self.ids, self.values, self.numbers)

    def _warn(self, tally: _Tally, kind: str, text: str) -> None:
        if tally.count:
            self.findings.warn(
                self.file, tally.first, kind, f"{tally.count:,} {text}; this is the first"
            )

    def _row(self, place: int) -> int:
        """Read the row that begins at ``place``; how many lines it takes."""
        line, number = self.lines[place], place + 1
        taken = 1
        if not line.strip():
            self.empty.add(number)
            return taken
        problem = _bad_characters(line)
        value: str | None
        if problem:
            self.findings.error(self.file, number, *problem)
            name, value = line.partition(",")[0], None
        elif '"' in line:
            name, value, taken = self._quoted(place)
        else:
            name, value = self._split(line, number)
        self._keep(name, value, number)
        return taken

    def _split(self, line: str, number: int) -> tuple[str, str | None]:
        """Id and value of a row, quotes taken as they stand."""
        name, comma, value = line.partition(",")
        if not comma:
            self._one_column(name, number)
            return name, None
        if "," in value and not self._joined(value, number):
            return name, None
        return name, value

    def _joined(self, value: str, number: int) -> bool:
        """Whether the commas of an unquoted ``value`` belong to the prediction."""
        if self.kind == "integer":
            columns = value.count(",") + 2
            self.findings.error(
                self.file, number, "columns", f"has {columns} columns; there are two, id,prediction"
            )
            return False
        if self.kind == "string":
            self.commas.add(number)
        return True

    def _one_column(self, name: str, number: int) -> None:
        self.findings.error(
            self.file,
            number,
            "columns",
            f"has one column, {excerpt(name)}; there are two, id,prediction",
        )

    def _quoted(self, place: int) -> tuple[str, str | None, int]:
        """Id, value and number of lines of a row with quotes in it."""
        whole, number = self.lines[place], place + 1
        for taken in range(1, MAX_LINES_OF_ROW + 1):
            try:
                fields = next(csv.reader([whole], strict=True))
            except csv.Error:
                following = place + taken
                if following == len(self.lines) or self._begins_row(self.lines[following]):
                    break
                whole += "\n" + self.lines[following]
                continue
            return *self._fields(fields, whole, number), taken
        self.quotes.add(number)
        return *self._split(self.lines[place], number), 1

    def _fields(self, fields: list[str], whole: str, number: int) -> tuple[str, str | None]:
        name, values = fields[0], fields[1:]
        if not values:
            self._one_column(name, number)
            return name, None
        if len(values) == 1:
            return name, values[0]
        # More than one comma outside quotes: the text as it stands, its quotes too.
        rest = ",".join(values) if whole.startswith('"') else whole.partition(",")[2]
        return name, rest if self._joined(rest, number) else None

    def _begins_row(self, line: str) -> bool:
        name, comma, _ = line.partition(",")
        return bool(comma) and name.strip().strip('"') in self.known

    def _keep(self, name: str, value: str | None, number: int) -> None:
        bare = name.strip()
        if name not in self.known and bare in self.known:
            self.spaces.add(number)
            name = bare
        self.ids.append(name)
        self.values.append(value)
        self.numbers.append(number)


def is_header(name: str, value: str) -> bool:
    """Whether a first row whose id is unknown names the columns."""
    words = [re.sub(r"[\W_]", "", text.lower()) for text in (name, value)]
    return any(_HEADER_WORD.fullmatch(word) for word in words)


def _bad_characters(line: str) -> tuple[str, str] | None:
    """Kind and text of what is wrong with the characters of a line, if anything is."""
    found = _SURROGATE.search(line)
    if found:
        byte = ord(found.group()) - 0xDC00
        return "encoding", (
            f"holds the byte 0x{byte:02x}, which is not UTF-8 (in Latin-1 it is "
            f"{excerpt(chr(byte))}); save the file as UTF-8"
        )
    if "\0" in line:
        return "encoding", "holds a NUL byte; the file is damaged or no text in UTF-8"
    return None
