"""Tests and formats for the sentences of answers, which claim only significant effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from tasktransfer.present.numbers import Range, bound_interval, format_signed, is_missing

MOST_Q = 0.05
"""Maximum q of a difference that is called significant."""


def is_significantly_positive(frame: pd.DataFrame, value: str = "value", q: str = "q") -> pd.Series:
    """Return whether each row's difference is significantly above 0."""
    return (frame[q] <= MOST_Q) & (frame[value] > 0)


def is_significantly_negative(frame: pd.DataFrame, value: str = "value", q: str = "q") -> pd.Series:
    """Return whether each row's difference is significantly below 0."""
    return (frame[q] <= MOST_Q) & (frame[value] < 0)


def format_value_with_interval(
    value: Any, low: Any, high: Any, form: str, bounds: Range | None = None
) -> str:
    """Format a value with its interval, such as ``1.2 [0.4, 2.0]``, or alone without one.

    ``bounds`` is the range of the quantity, at which the interval is cut off.
    """
    text = format_signed(value, form)
    if bounds:
        low, high = bound_interval(low, high, bounds)
    if is_missing(low) or is_missing(high):
        return text
    return f"{text} [{format_signed(low, form)}, {format_signed(high, form)}]"


def excludes_zero(low: Any, high: Any) -> bool:
    """Return whether an interval is known and excludes 0."""
    return not is_missing(low) and not is_missing(high) and (low > 0 or high < 0)


def join_names(names: Sequence[str], most: int = 4) -> str:
    """Join names as ``a, b and c``, or as ``a, b and 3 more`` beyond ``most`` names."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def format_fraction(count: int, of: int, what: str) -> str:
    """Format a count and its total, as in ``3 of 12 cells`` or ``none of 12 cells``."""
    return f"{count if count else 'none'} of {of} {what}"
