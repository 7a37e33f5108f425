"""The separator of a CSV file, and profiles of its columns, guessed from its rows.

Profiles distinguish names from data and rows from texts.

Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tasktransfer.files.csv_records import QUOTE, SEPARATORS, BrokenError, Dialect, read_records
from tasktransfer.files.untrusted import TextLines

PROFILE_ROWS = 10_000
MAX_VALUES, MAX_VALUE = 1000, 200
"""Maximum number of distinct values that are stored per column, and of characters of a value."""
MANY_ROWS, FEW_LABELS = 200, 60
"""Minimum number of rows and maximum number of distinct values of a label column.

All labels of such a column are assumed to be known.
"""
USUAL_NAMES = frozenset(
    (
        *("id", "dialogue_id", "dialog_id", "conversation_id", "conv_id", "turn", "turn_id"),
        *("text", "utterance", "message", "content", "speaker", "role", "split", "timestamp"),
        *("label", "intent", "emotion", "sentiment", "topic"),
    )
)
"""Names of columns that are hardly ever values of a first row."""
LONG_NAME_WORDS, LONG_NAME_CHARACTERS = 8, 80
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)


@dataclass(slots=True)
class Column:
    """The values of one column in the first ``PROFILE_ROWS`` rows.

    Attributes:
        count: number of values.
        values: distinct values, truncated.
        longest: length of the longest value.
        enclosed: number of values that begin and end with quotation marks that are text.
    """

    count: int = 0
    values: set[str] = field(default_factory=set)
    longest: int = 0
    enclosed: int = 0

    def add(self, value: str) -> None:
        self.count += 1
        if len(self.values) <= MAX_VALUES:
            self.values.add(value[:MAX_VALUE])
        self.longest = max(self.longest, len(value))
        self.enclosed += len(value) > 1 and value[0] == value[-1] == QUOTE

    @property
    def has_repeated_values(self) -> bool:
        """True if the column's values are repeated, as labels and names are."""
        is_short = self.longest <= MAX_VALUE
        return is_short and len(self.values) <= MAX_VALUES and 2 * len(self.values) <= self.count

    def may_contain(self, value: str) -> bool:
        """Return whether a value looks like the column's values, and not like part of a text."""
        if self.count >= MANY_ROWS and len(self.values) <= FEW_LABELS:
            return value in self.values
        return value == value.strip()  # in texts a space follows most commas


class Columns:
    """The columns of a file, with the names in its header."""

    def __init__(self, header: Sequence[str]) -> None:
        self.header = [name.strip() for name in header]
        self.columns = [Column() for _ in header]
        self._rows = 0
        self._unnamed = [place for place, name in enumerate(self.header) if not name]
        self._filled: set[int] = set()
        self._is_counted = bool(self._unnamed) and self._unnamed[0] == 0
        self._numbers: set[str] = set()
        self._last, self._jumps = -1, 0

    def add(self, cells: Sequence[str], *, is_sample: bool = True) -> None:
        """Count a complete row, and profile its values if ``is_sample``."""
        self._rows += 1
        if is_sample and self._rows <= PROFILE_ROWS:
            for column, cell in zip(self.columns, cells, strict=True):
                column.add(cell)
        for place in self._unnamed:
            if cells[place]:
                self._filled.add(place)
        if self._is_counted:
            self._count(cells[0])

    def _count(self, cell: str) -> None:
        """Count a cell in an unnamed first column."""
        self._is_counted = _INTEGER.fullmatch(cell) is not None
        if self._is_counted:
            self._jumps += int(cell) != self._last + 1
            self._last = int(cell)
        if len(self._numbers) < PROFILE_ROWS:
            self._numbers.add(cell)

    def are_rows(self, lines: Sequence[Sequence[str]], separator: str) -> bool:
        """Return whether the lines of one record look like separate rows.

        Stray quotation marks may then have joined them.
        """
        if any(len(cells) != len(self.columns) for cells in lines):
            return False
        return (
            separator == "\t"
            or all(  # texts contain no tabs
                column.may_contain(cell)
                for cells in lines
                for column, cell in zip(self.columns, cells, strict=True)
                if QUOTE not in (cell[:1], cell[-1:])
            )
        )

    def find_index_column(self) -> int | None:
        """Find the unnamed column that numbers the rows, as pandas writes it.

        Its numbers are distinct, or consecutive except at places where tables were joined.
        """
        differ = 2 * len(self._numbers) > min(self._rows, PROFILE_ROWS)
        counts_on = 10 * self._jumps <= self._rows
        return 0 if self._is_counted and (differ or counts_on) else None

    def find_empty_columns(self) -> list[int]:
        """Find the columns without a name and without values."""
        return [place for place in self._unnamed if place not in self._filled]

    def find_data_in_header(self) -> str | None:
        """Find a column name that is also a repeated value, so that the header may be data.

        Return None if no name is repeated. A single repeated name is accepted if another column
        has a usual name, as in a column ``speaker`` with the values ``speaker`` and ``listener``.
        """
        if self.header == list(map(str, range(len(self.header)))):
            return None  # default names of pandas
        found = [
            name
            for name, column in zip(self.header, self.columns, strict=True)
            if name and column.has_repeated_values and name in column.values
        ]
        usual = {name.casefold() for name in self.header if name not in found} & USUAL_NAMES
        return None if not found or (len(found) == 1 and usual) else found[0]

    def find_long_names(self) -> list[str]:
        """Find names that are long enough to be a dialogue's text."""
        return [
            name
            for name in self.header
            if len(name.split()) >= LONG_NAME_WORDS or len(name) >= LONG_NAME_CHARACTERS
        ]

    def has_quoted_labels(self) -> bool:
        """Return whether repeated values are in quotation marks."""
        return any(column.enclosed and column.has_repeated_values for column in self.columns)


SAMPLE_LINES = 500
SAMPLE_CHARACTERS = 2**18
_NAMED_SEPARATOR = re.compile(r'"?sep=([,;\t|])"?[\r\n]*')
"""A first line that gives the separator, for Excel."""


def find_separator(path: Path) -> tuple[str, int]:
    """Find the separator for which header and first rows agree, and the header's line."""
    lines, size = list[tuple[int, str]](), 0
    for number, line in TextLines(path, ""):
        if line.strip():
            lines.append((number, line))
            size += len(line)
        if number > SAMPLE_LINES or size > SAMPLE_CHARACTERS:
            break
    if not lines:
        return ",", 1
    if named := _NAMED_SEPARATOR.fullmatch(lines[0][1]):
        return named[1], lines[0][0] + 1
    usual = "\t" if ".tsv" in path.name.lower() else ","
    ranks = {sep: _rank_separator(lines, sep, is_usual=sep == usual) for sep in SEPARATORS}
    return max(ranks, key=lambda separator: ranks[separator]), lines[0][0]


def _rank_separator(
    lines: list[tuple[int, str]], separator: str, *, is_usual: bool
) -> tuple[float, ...]:
    """Return a tuple by which separators are ranked, the largest for the best.

    The fraction of rows with as many cells as the header counts first, then the number of cells. In
    a .tsv file, tabs win if all rows have as many cells as the header.
    """
    best: tuple[float, ...] = (0.0, 0.0, float(is_usual))
    for has_quotes in (True, False):
        widths = list[int]()
        with suppress(BrokenError):  # a sample may end within a cell
            for record in read_records(lines, Dialect(separator, has_quotes)):
                widths.append(len(record.cells))
        if widths and widths[0] > 1:
            agreeing = widths[1:].count(widths[0]) / max(len(widths) - 1, 1)
            is_tsv = is_usual and separator == "\t" and agreeing == 1
            best = max(best, (1.0, float(is_tsv), agreeing, widths[0], float(is_usual)))
    return best
