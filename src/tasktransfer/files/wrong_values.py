"""The sentence about a value that is not as expected, for messages about data and configs."""

from __future__ import annotations

from datetime import date
from typing import Any


def format_value(value: Any) -> str:
    """Format a value as JSON or YAML for a message, in at most 60 characters."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    try:
        text = str(value) if isinstance(value, date) else repr(value)
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deeply"
    return text if len(text) <= 60 else text[:57] + "..."


def describe_wrong_value(value: Any, expected: str) -> str:
    """Describe a wrong value, given the expected kind such as ``a number above 0``."""
    return f"The value is {format_value(value)}, but it must be {expected}."
