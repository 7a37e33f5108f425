"""Number format of all tables: a true minus sign, no negative zero, a dash for no value."""

from __future__ import annotations

import math
import sys
from typing import Any

DASH = "–"
INCOMPLETE = "†"
"""Mark of a number that was computed from fewer runs than planned."""
OTHERWISE = "‡"
"""Mark of a published number that is not comparable."""


def absent(value: object) -> bool:
    """Return whether a cell has no value: None, NaN or pandas' NA."""
    pandas = sys.modules.get("pandas")  # a value can be NA only if pandas is imported
    if value is None or (pandas is not None and value is pandas.NA):
        return True
    return isinstance(value, float) and math.isnan(value)


def number(value: Any, form: str) -> str:
    """Format a number with a format of ``format()``, but never as a power of ten.

    Large numbers become whole numbers, and tiny positive ones ``< 0.0001``.
    """
    if absent(value):
        return DASH
    text = format(int(value) if form.endswith("d") else float(value), form)
    if "e+" in text and form.endswith("g"):
        text = format(float(value), ",.0f")
    elif "e-" in text and form.endswith("g") and value > 0:
        return "< 0.0001"
    if not text.strip("+-0.,%"):
        text = text.replace("-", "+" if "+" in form else "")
    return text.replace("-", "−")


def count(value: Any, *, signed: bool = False) -> str:
    """Format a whole number with thousands separators."""
    return number(value, "+,d" if signed else ",d")


def counted(count: int, thing: str) -> str:
    """Format a count with its noun: 1 training, 2 trainings."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def score(value: Any) -> str:
    """Format a score, 0 to 100."""
    return number(value, ".2f")


def delta(value: Any) -> str:
    """Format a difference of two scores, in points."""
    return number(value, "+.2f")


def with_sigma(text: str, sigma: Any) -> str:
    """Add a standard deviation in parentheses to a number; either may be missing."""
    spread = score(sigma)
    return text if DASH in (text, spread) else f"{text} ({spread})"


def interval(low: Any, high: Any, form: str) -> str:
    """Format both ends of an interval; a dash if either is missing."""
    if absent(low) or absent(high):
        return DASH
    return f"{number(low, form)} to {number(high, form)}"


def p_value(value: Any) -> str:
    """Format a p or q with three decimals; ``< 0.001`` for smaller values."""
    if absent(value):
        return DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def p_equals(name: str, value: Any) -> str:
    """Format a p or q for a sentence: ``p = 0.021``, ``q < 0.001``."""
    text = p_value(value)
    return f"{name} {text}" if text.startswith("<") else f"{name} = {text}"
