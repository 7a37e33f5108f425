"""The separator of a CSV file, guessed from its first rows. Standard library only."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from tasktransfer.files.csv_records import SEPARATORS, BrokenError, Dialect, read_records
from tasktransfer.files.text_stream import TextLines

SAMPLE_LINES = 500
SAMPLE_CHARACTERS = 2**18
_NAMED_SEPARATOR = re.compile(r'"?sep=([,;\t|])"?[\r\n]*')
"""A first line that gives the separator, for Excel."""


def find_separator(path: Path) -> tuple[str, int]:
    """Return the separator for which header and first rows agree, and the line of the header."""
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
    ranks = {sep: _rank(lines, sep, is_usual=sep == usual) for sep in SEPARATORS}
    return max(ranks, key=lambda separator: ranks[separator]), lines[0][0]


def _rank(lines: list[tuple[int, str]], separator: str, *, is_usual: bool) -> tuple[float, ...]:
    """Return the rank of a separator; higher is better.

    The fraction of rows with as many cells as the header counts first, then the number of cells. In
    a .tsv tabs win if all rows agree.
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
