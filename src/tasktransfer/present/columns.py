"""Columns of printed tables, which format the text of a cell, and tables for terminals.

This module does not import pandas, so that designs can declare tables without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tasktransfer.present import numbers
from tasktransfer.present.numbers import DASH, OTHERWISE, format_number, is_missing

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


def make_text_column(
    key: str, label: str, spell: Callable[[str], str] = str, kind: ColumnKind = "word"
) -> Column:
    """Return a text column that shows a dash for missing values.

    Args:
        key: column of the frame.
        label: title of the printed column.
        spell: function that formats a value.
        kind: kind of the column, see ``Head``.
    """
    return Column(
        Head(label, kind), lambda row: DASH if is_missing(row[key]) else spell(str(row[key]))
    )


def make_long_text_column(key: str, label: str) -> Column:
    """Return a column for long texts, such as paths, whose lines may break."""
    return make_text_column(key, label, kind="long")


def make_number_column(key: str, label: str, form: str) -> Column:
    """Return a number column with a format specification such as ``.2f``.

    Formats that end in ``d`` are for counts (``Column.counts``).
    """
    counts = form.endswith("d")
    return Column(Head(label, "number"), lambda row: numbers.format_number(row[key], form), counts)


def make_interval_column(
    low: str, high: str, label: str, form: str, bounds: numbers.Range | None = None
) -> Column:
    """Return a column of intervals (``low to high``) from two columns of a frame.

    ``bounds`` is the range of the quantity, at which the printed interval is cut off.
    """

    def show(row: Row) -> str:
        ends = row[low], row[high]
        return numbers.format_interval(*_bound_interval(ends, bounds), form)

    return Column(Head(label, "number"), show)


def _bound_interval(ends: tuple[Any, Any], bounds: numbers.Range | None) -> tuple[Any, Any]:
    """Clip the ends of an interval to the range of the quantity, if a range is given."""
    return numbers.bound_interval(*ends, bounds) if bounds else ends


def make_estimate_column(
    key: str,
    label: str,
    form: str,
    low: str = "low",
    high: str = "high",
    bounds: numbers.Range | None = None,
) -> Column:
    """Return a column of estimates with intervals, such as ``61.2 [58.0, 64.1]``.

    A value whose interval is missing is shown alone.

    ``bounds`` is the range of the quantity, as for ``make_interval_column``.
    """

    def show(row: Row) -> str:
        value = numbers.format_number(row[key], form)
        ends = _bound_interval((row.get(low), row.get(high)), bounds)
        if is_missing(row[key]) or any(is_missing(end) for end in ends):
            return value
        first, last = (numbers.format_signed(end, form) for end in ends)
        return f"{value} [{first}, {last}]"

    return Column(Head(label, "number"), show)


def make_p_value_column(key: str, label: str) -> Column:
    """Return a column of p-values or q-values with three decimals."""
    return Column(Head(label, "number"), lambda row: numbers.format_p_value(row[key]))


PUBLISHED, DIFFERENCE, DIFFERS = "published", "difference", "differs"


def make_published_column(form: str, label: str = "Published", suffix: str = "") -> Column:
    """Return a column of the paper's values, with ‡ if they average other members."""

    def show(row: Row) -> str:
        if row.get(f"{DIFFERS}{suffix}"):
            return OTHERWISE
        value = row.get(f"{PUBLISHED}{suffix}")
        return DASH if is_missing(value) else format_number(value, form)

    return Column(Head(label, "number"), show)


def make_difference_column(form: str, label: str = "Difference", suffix: str = "") -> Column:
    """Return a column of our values minus the paper's."""

    def show(row: Row) -> str:
        value = row.get(f"{DIFFERENCE}{suffix}")
        return DASH if is_missing(value) else format_number(value, form)

    return Column(Head(label, "number"), show)


def format_table(
    rows: Sequence[Mapping[str, Any]], left: Collection[str] | None = None
) -> list[str]:
    """Format rows with equal keys as aligned lines.

    Floats have three digits, whole numbers have thousands separators, and None is a question mark.
    ``left`` are the left-aligned columns, by default those with texts.
    """
    from tabulate import tabulate  # noqa: PLC0415  # plan and status start without it

    if not rows:
        return []
    if left is None:
        left = [key for key, value in rows[0].items() if isinstance(value, str)]
    # The titles are a row, because tabulate separates headers by more space.
    lines = [list(rows[0]), *([_format_cell(value) for value in row.values()] for row in rows)]
    align = ["left" if key in left else "right" for key in rows[0]]
    table = tabulate(lines, tablefmt="plain", disable_numparse=True, colalign=align)
    return str(table).splitlines()


def _format_cell(value: Any) -> str:
    if value is None:
        return "?"
    if isinstance(value, float):
        return f"{value:.3f}" if value < 1 else f"{value:,.{2 if value < 10 else 0}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
