"""Rows of different length in one flat array, for selecting many rows without a Python loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int32]]
Longs = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Ragged:
    """Rows of different length in one flat array: row i is ``values[starts[i]:starts[i + 1]]``."""

    values: Ints
    starts: Ints

    def __getitem__(self, row: int) -> Ints:
        return self.values[self.starts[row] : self.starts[row + 1]]

    def lengths(self) -> Ints:
        """Return the lengths of all rows."""
        return np.diff(self.starts)

    def take(self, rows: Sequence[int] | Ints | Longs) -> Ragged:
        """Return the rows at given indices, in that order."""
        picked = np.asarray(rows, dtype=np.int64)
        begins = self.starts[picked]
        lengths = self.starts[picked + 1] - begins
        return Ragged(self.values[index_spans(begins, lengths)], compute_starts(lengths))

    def join(self, others: Ragged) -> Ragged:
        """Concatenate each row with the corresponding row in ``others``."""
        mine, theirs = self.lengths(), others.lengths()
        starts = compute_starts(mine + theirs)
        values = np.empty(int(starts[-1]), np.int32)
        values[index_spans(starts[:-1], mine)] = self.values
        values[index_spans(starts[:-1] + mine, theirs)] = others.values
        return Ragged(values, starts)


def build_ragged(rows: Sequence[Ints]) -> Ragged:
    """Build a ragged array from rows."""
    values = np.concatenate(rows) if len(rows) else np.zeros(0, np.int32)
    return Ragged(values, compute_starts(np.array([len(row) for row in rows], np.int32)))


def compute_starts(lengths: Ints | Longs) -> Ints:
    """Compute the starts of rows from their lengths, and the end of the last row."""
    return np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)])


def index_spans(begins: Ints | Longs, lengths: Ints | Longs) -> Longs:
    """Return the concatenated indices in spans with given starts and lengths."""
    ends = np.cumsum(lengths, dtype=np.int64)
    return np.repeat(begins - (ends - lengths), lengths) + np.arange(
        int(ends[-1]) if len(ends) else 0
    )


def pad_rows(
    rows: Ragged, fill: int, *, left: bool = False, multiple: int = 1
) -> tuple[Longs, Longs]:
    """Pad rows to a rectangular array.

    Returns:
        The values, shape (rows, longest, rounded up to a ``multiple``), padded with ``fill``. The
        mask has the same shape, and is 1 for values and 0 for padding.
    """
    lengths = rows.lengths().astype(np.int64)
    width = -(-int(lengths.max()) // multiple) * multiple
    begins = np.arange(len(lengths)) * width + (width - lengths if left else 0)
    places = index_spans(begins, lengths)
    values = np.full(len(lengths) * width, fill, dtype=np.int64)
    mask = np.zeros_like(values)
    values[places], mask[places] = rows.values, 1
    return values.reshape(-1, width), mask.reshape(-1, width)
