"""Limits on the data of a node, read from its identity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def collect_limits(identity: Any) -> dict[str, int]:
    """Return key path → limit for every key that begins with ``limit`` and is set.

    A node with such limits uses subsampled data.
    """
    return dict(_collect_cuts(identity, ""))


def _collect_cuts(value: Any, path: str) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for key, item in value.items() if isinstance(value, Mapping) else ():
        below = f"{path}.{key}" if path else str(key)
        if str(key).startswith("limit") and isinstance(item, int) and not isinstance(item, bool):
            found.append((below, item))
        found += _collect_cuts(item, below)
    return found
