"""The order of turns by a field with their number or time."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

Keys = Sequence[Any]
_DIGITS = re.compile(r"(\d{1,18})")
_NOT_SORTABLE = re.compile(r"/|\b[ap]\.?m\b", re.IGNORECASE)
"""Marks of dates whose numbers do not sort by size: 1/2/2024, 9:59 PM."""


def build_sort_keys(values: Sequence[Any]) -> Keys | None:
    """Return sort keys for values that are numbers, dates or names with numbers (``d0_12``).

    The result is None if the values are of another kind or of different kinds.
    """
    for parse in (_parse_number, _parse_zoned_date, _parse_naive_date):
        keys = [parse(value) for value in values]
        if None not in keys:
            return keys
    parts = [_split_numbers(value) for value in values]
    if any(len(part) < 2 for part in parts) or len({tuple(part[::2]) for part in parts}) > 1:
        return None
    return [tuple(map(int, part[1::2])) for part in parts]


def _parse_number(value: Any) -> float | int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and "_" not in value:
        try:
            value = float(value)
        except ValueError:
            return None
    return value if isinstance(value, float) and math.isfinite(value) else None


def _parse_zoned_date(value: Any) -> datetime | None:
    """Parse a date with a time zone and convert it to UTC, or return None for other values."""
    found = _parse_date(value)
    return found.astimezone(UTC) if found is not None and found.tzinfo else None


def _parse_naive_date(value: Any) -> datetime | None:
    found = _parse_date(value)
    return found if found is not None and not found.tzinfo else None


def _parse_date(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    try:
        return datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


def _split_numbers(value: Any) -> list[str]:
    """Split a name into texts and numbers for sorting, or return [] for unsortable values."""
    if not isinstance(value, str) or _NOT_SORTABLE.search(value):
        return []
    return _DIGITS.split(value.strip())
