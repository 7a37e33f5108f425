"""Formats of numbers in tables and in sentences, which claim only significant effects.

Numbers have a true minus sign and no negative zero. A dash is a missing value.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

DASH = "–"
INCOMPLETE = "†"
"""Mark of a number that was computed from fewer runs than planned."""
OTHERWISE = "‡"
"""Mark of a published number that is not comparable."""
LEAST = 1e-6
"""Distance from 0 below which a difference is a rounding error of its computation."""


def is_missing(value: object) -> bool:
    """Return whether a cell is missing (None, NaN or pandas' NA)."""
    pandas = sys.modules.get("pandas")  # a value can be NA only if pandas is imported
    if value is None or (pandas is not None and value is pandas.NA):
        return True
    return isinstance(value, float) and math.isnan(value)


def format_number(value: Any, form: str) -> str:
    """Format a number by a format specification, avoiding scientific notation.

    Large numbers become whole numbers, and tiny positive numbers become ``< 0.0001``.
    """
    if is_missing(value):
        return DASH
    text = format(int(value) if form.endswith("d") else float(value), form)
    if "e+" in text and form.endswith("g"):
        text = format(float(value), ",.0f")
    elif "e-" in text and form.endswith("g") and value > 0:
        return "< 0.0001"
    if not text.strip("+-0.,%"):
        text = text.replace("-", "+" if "+" in form else "")
    return text.replace("-", "−")


def format_signed(value: Any, form: str) -> str:
    """Format a difference, or an end of its interval, with a visible sign.

    A number that would be rounded to 0 gets more decimals, so −0.03 with ``+.1f`` is ``−0.03``,
    because its sign decides whether an interval excludes 0. Numbers closer to 0 than ``LEAST``
    count as 0. Without ``+`` in the format, the text is that of ``format_number``.
    """
    text = format_number(value, form)
    if "+" not in form or is_missing(value) or text.strip("+-0.,%−"):
        return text
    if form.endswith("%") or abs(value) < LEAST:
        return text
    decimals = -math.floor(math.log10(abs(value)))
    return format_number(value, f"+.{decimals}f")


def format_count(value: Any, *, signed: bool = False) -> str:
    """Format a whole number with thousands separators."""
    return format_number(value, "+,d" if signed else ",d")


def format_score(value: Any) -> str:
    """Format a score on the scale from 0 to 100."""
    return format_number(value, ".2f")


def format_delta(value: Any) -> str:
    """Format a difference of two scores in points."""
    return format_number(value, "+.2f")


def add_sigma(text: str, sigma: Any) -> str:
    """Add a standard deviation in parentheses to a formatted number.

    The text is returned unchanged if either of the two is missing.
    """
    spread = format_score(sigma)
    return text if DASH in (text, spread) else f"{text} ({spread})"


Range = tuple[float, float]
SCORES: Range = (0.0, 100.0)
DIFFERENCES: Range = (-100.0, 100.0)
"""Range of a difference of two scores."""
SECOND_DIFFERENCES: Range = (-200.0, 200.0)
"""Range of a difference of two differences of scores, or of two correlations x 100."""


def bound_interval(low: Any, high: Any, bounds: Range) -> tuple[Any, Any]:
    """Clip an interval to a range, or return it unchanged if an end is missing.

    A 95 % interval stays one, because no value outside the range can be true.
    """
    if is_missing(low) or is_missing(high):
        return low, high
    least, most = bounds
    return min(max(low, least), most), max(min(high, most), least)


def format_interval(low: Any, high: Any, form: str) -> str:
    """Format both ends of an interval, or return a dash if an end is missing."""
    if is_missing(low) or is_missing(high):
        return DASH
    return f"{format_signed(low, form)} to {format_signed(high, form)}"


def format_p_value(value: Any) -> str:
    """Format a p-value or q-value with three decimals, or as ``< 0.001``."""
    if is_missing(value):
        return DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def format_named_p(name: str, value: Any) -> str:
    """Format a p-value or q-value for a sentence, such as ``p = 0.021`` or ``q < 0.001``."""
    text = format_p_value(value)
    return f"{name} {text}" if text.startswith("<") else f"{name} = {text}"


def round_significant(value: float) -> float | None:
    """Round a number to four significant digits, with None for NaN."""
    return None if is_missing(value) else float(f"{value:.4g}")


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
