"""Limits that a node's identity says: what was cut of the data that it could have had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def cuts_of(identity: Any) -> dict[str, int]:
    """Key path → limit, of every key that begins with ``limit`` and is set: numbers of a node with
    any are of less than the whole data."""
    return dict(_cuts(identity, ""))


def _cuts(value: Any, path: str) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for key, item in value.items() if isinstance(value, Mapping) else ():
        below = f"{path}.{key}" if path else str(key)
        if str(key).startswith("limit") and isinstance(item, int) and not isinstance(item, bool):
            found.append((below, item))
        found += _cuts(item, below)
    return found
