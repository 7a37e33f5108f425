"""Locations in files as ``file:line``, which terminals and editors turn into links."""

from __future__ import annotations

from pathlib import Path


def format_location(file: str | Path, line: int | None = None, column: int | None = None) -> str:
    """Return ``file:line:column``, both numbers from 1; without the numbers that are None."""
    return ":".join(str(part) for part in (file, line, column) if part is not None)
