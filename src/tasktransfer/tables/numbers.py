"""How every table spells its numbers: a true minus sign, no negative zero, a dash for no value."""

from __future__ import annotations

import math
import sys
from typing import Any

DASH = "–"
INCOMPLETE = "†"
"""Marks what was computed from less than was planned."""
OTHERWISE = "‡"
"""Marks where a published number is of something else."""


def absent(value: object) -> bool:
    """Whether a cell has no value: None, NaN or pandas' NA."""
    pandas = sys.modules.get("pandas")  # who has its NA has imported it; `status` never does
    if value is None or (pandas is not None and value is pandas.NA):
        return True
    return isinstance(value, float) and math.isnan(value)


def number(value: Any, form: str) -> str:
    """A number in a format of ``format()``; never as a power of ten: thousands are whole, and what
    is next to nothing is said to be."""
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
    """A whole number with thousands apart."""
    return number(value, "+,d" if signed else ",d")


def counted(count: int, thing: str) -> str:
    """1 training, 2 trainings."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def score(value: Any) -> str:
    """A score, 0 to 100."""
    return number(value, ".2f")


def delta(value: Any) -> str:
    """A difference of two scores, in points."""
    return number(value, "+.2f")


def with_sigma(text: str, sigma: Any) -> str:
    """A number and its spread in brackets; either may be missing."""
    spread = score(sigma)
    return text if DASH in (text, spread) else f"{text} ({spread})"


def interval(low: Any, high: Any, form: str) -> str:
    """Both ends of an interval; a dash where either cannot be told."""
    if absent(low) or absent(high):
        return DASH
    return f"{number(low, form)} to {number(high, form)}"


def p_value(value: Any) -> str:
    """A p or q: three decimals, and no p of 0."""
    if absent(value):
        return DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def p_equals(name: str, value: Any) -> str:
    """A p or q in a sentence: ``p = 0.021``, ``q < 0.001``."""
    text = p_value(value)
    return f"{name} {text}" if text.startswith("<") else f"{name} = {text}"
