"""Limits on the data of a node, read from its identity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def collect_limits(identity: Any) -> dict[str, int]:
    """Return the limits in an identity by key path: keys that begin with ``limit`` and are set.

    A node with such limits uses subsampled data.
    """
    return dict(_collect_limits(identity, ""))


def _collect_limits(value: Any, path: str) -> list[tuple[str, int]]:
    limits: list[tuple[str, int]] = []
    for key, item in value.items() if isinstance(value, Mapping) else ():
        below = f"{path}.{key}" if path else str(key)
        if str(key).startswith("limit") and isinstance(item, int) and not isinstance(item, bool):
            limits.append((below, item))
        limits += _collect_limits(item, below)
    return limits
