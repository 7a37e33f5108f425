"""Sentences of answers: what intervals and tests bear, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from tasktransfer.tables.numbers import absent, number

MOST_Q = 0.05
"""Share of false discoveries that is accepted among what is called sure."""


def above(frame: pd.DataFrame, value: str = "value", q: str = "q") -> pd.Series:
    """Of each row, whether its difference is surely above 0."""
    return (frame[q] <= MOST_Q) & (frame[value] > 0)


def below(frame: pd.DataFrame, value: str = "value", q: str = "q") -> pd.Series:
    """Of each row, whether its difference is surely below 0."""
    return (frame[q] <= MOST_Q) & (frame[value] < 0)


def with_interval(value: Any, low: Any, high: Any, form: str) -> str:
    """``1.2 [0.4, 2.0]``; without an interval the value alone."""
    text = number(value, form)
    if absent(low) or absent(high):
        return text
    return f"{text} [{number(low, form)}, {number(high, form)}]"


def excludes_zero(low: Any, high: Any) -> bool:
    """Whether an interval is there and lies on one side of 0."""
    return not absent(low) and not absent(high) and (low > 0 or high < 0)


def listed(names: Sequence[str], most: int = 4) -> str:
    """``a, b and c``; of many the first ones, and how many more."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def counted_of(count: int, of: int, what: str) -> str:
    """``3 of 12 cells``, ``none of 12 cells``."""
    return f"{count if count else 'none'} of {of} {what}"
