"""Columns of a paper's values in printed tables. Light: declarations name them."""

from __future__ import annotations

from tasktransfer.tables.columns import Column, Head, Row
from tasktransfer.tables.numbers import DASH, OTHERWISE, absent, number

PUBLISHED, DIFFERENCE, DIFFERS = "published", "difference", "differs"


def published_column(form: str, label: str = "Published", suffix: str = "") -> Column:
    """The paper's value; ‡ where it has one over other members."""

    def show(row: Row) -> str:
        if row.get(f"{DIFFERS}{suffix}"):
            return OTHERWISE
        value = row.get(f"{PUBLISHED}{suffix}")
        return DASH if absent(value) else number(value, form)

    return Column(Head(label, "number"), show)


def difference_column(form: str, label: str = "Difference", suffix: str = "") -> Column:
    """Ours minus the paper's; of tables where that is told."""

    def show(row: Row) -> str:
        value = row.get(f"{DIFFERENCE}{suffix}")
        return DASH if absent(value) else number(value, form)

    return Column(Head(label, "number"), show)
