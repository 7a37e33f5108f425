"""Columns of printed tables, which format the text of a cell.

This module does not import pandas, so that designs can declare tables without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tasktransfer.present import numbers
from tasktransfer.present.numbers import DASH, is_missing

Row = Mapping[str, Any]
Show = Callable[[Row], str]
ColumnKind = Literal["word", "number", "long"]


@dataclass(frozen=True, slots=True)
class Head:
    """A column's name and kind. Numbers are right-aligned, and long texts (paths) may break."""

    label: str
    kind: ColumnKind = "word"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a printed table.

    ``show`` returns the text of a row's cell. ``counts`` marks a number of seeds or pairs, which is
    known even if the row's values are missing.
    """

    head: Head
    show: Show
    counts: bool = False


def text(
    key: str, label: str, spell: Callable[[str], str] = str, kind: ColumnKind = "word"
) -> Column:
    """Return a column of words, with a dash for missing ones."""
    return Column(
        Head(label, kind), lambda row: DASH if is_missing(row[key]) else spell(str(row[key]))
    )


def long_text(key: str, label: str) -> Column:
    """Return a column of paths or messages."""
    return text(key, label, kind="long")


def number(key: str, label: str, form: str) -> Column:
    """Return a column of numbers in a format of ``format()``; whole numbers are counts."""
    counts = form.endswith("d")
    return Column(Head(label, "number"), lambda row: numbers.format_number(row[key], form), counts)


def interval(
    low: str, high: str, label: str, form: str, bounds: numbers.Range | None = None
) -> Column:
    """Return a column that combines two columns of a frame: ``low to high``.

    ``bounds`` is the range of the quantity, at which the printed interval is cut off.
    """

    def show(row: Row) -> str:
        ends = row[low], row[high]
        return numbers.format_interval(*_bound(ends, bounds), form)

    return Column(Head(label, "number"), show)


def _bound(ends: tuple[Any, Any], bounds: numbers.Range | None) -> tuple[Any, Any]:
    return numbers.bound_interval(*ends, bounds) if bounds else ends


def estimate(
    key: str,
    label: str,
    form: str,
    low: str = "low",
    high: str = "high",
    bounds: numbers.Range | None = None,
) -> Column:
    """Return a column of values with intervals, ``61.2 [58.0, 64.1]``, or without if missing.

    ``bounds`` is the range of the quantity, as for ``interval``.
    """

    def show(row: Row) -> str:
        value = numbers.format_number(row[key], form)
        ends = _bound((row.get(low), row.get(high)), bounds)
        if is_missing(row[key]) or any(is_missing(end) for end in ends):
            return value
        first, last = (numbers.format_number(end, form) for end in ends)
        return f"{value} [{first}, {last}]"

    return Column(Head(label, "number"), show)


def probability(key: str, label: str) -> Column:
    """Return a column of p-values."""
    return Column(Head(label, "number"), lambda row: numbers.format_p_value(row[key]))
