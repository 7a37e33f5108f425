"""Columns of a paper's values in printed tables, for declarations, which must not import pandas."""

from __future__ import annotations

from tasktransfer.present.columns import Column, Head, Row
from tasktransfer.present.numbers import DASH, OTHERWISE, format_number, is_missing

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
