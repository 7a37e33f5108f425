"""Kinds of columns: what is written in a cell of a table that people read.

Light, so that a design can declare its tables where nothing may import pandas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tasktransfer.tables import numbers
from tasktransfer.tables.numbers import DASH, absent

Row = Mapping[str, Any]
Show = Callable[[Row], str]
ColumnKind = Literal["word", "number", "long"]


@dataclass(frozen=True, slots=True)
class Head:
    """A column's name. Numbers are aligned to the right, long texts (paths) break anywhere."""

    label: str
    kind: ColumnKind = "word"


@dataclass(frozen=True, slots=True)
class Column:
    """``show`` makes the text of a row's cell. ``counts``: how much is behind a row (seeds, pairs),
    which is known where the row's values are not."""

    head: Head
    show: Show
    counts: bool = False


def text(
    key: str, label: str, spell: Callable[[str], str] = str, kind: ColumnKind = "word"
) -> Column:
    """A column of words; a dash where there are none."""
    return Column(Head(label, kind), lambda row: DASH if absent(row[key]) else spell(str(row[key])))


def long_text(key: str, label: str) -> Column:
    """A column of paths or messages."""
    return text(key, label, kind="long")


def number(key: str, label: str, form: str) -> Column:
    """A column of numbers in a format of ``format()``; whole ones are counts."""
    counts = form.endswith("d")
    return Column(Head(label, "number"), lambda row: numbers.number(row[key], form), counts)


def interval(low: str, high: str, label: str, form: str) -> Column:
    """Two columns of a frame as one: ``low to high``."""
    return Column(Head(label, "number"), lambda row: numbers.interval(row[low], row[high], form))


def estimate(key: str, label: str, form: str, low: str = "low", high: str = "high") -> Column:
    """A value with its interval, ``61.2 [58.0, 64.1]``; without one the value alone."""

    def show(row: Row) -> str:
        value = numbers.number(row[key], form)
        ends = [row.get(end) for end in (low, high)]
        if absent(row[key]) or any(absent(end) for end in ends):
            return value
        return f"{value} [{numbers.number(ends[0], form)}, {numbers.number(ends[1], form)}]"

    return Column(Head(label, "number"), show)


def probability(key: str, label: str) -> Column:
    """A column of p values."""
    return Column(Head(label, "number"), lambda row: numbers.p_value(row[key]))
