"""Helpers for the identities of nodes, and limits on data read from them; standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

SHORT = 12
"""Number of hex digits of a digest in paths."""

Settings = Mapping[str, Any]


class _Referred(Protocol):
    @property
    def reference(self) -> Any: ...


def list_references(nodes: Iterable[_Referred]) -> list[Any]:
    """Return the references to nodes for the identity of a node that reads them."""
    return [node.reference for node in nodes]


def drop_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are part of an identity: all that are neither empty nor None."""
    return {name: value for name, value in values.items() if value}


def find_texts(value: Any) -> Iterator[str]:
    """Yield every text in nested plain values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from find_texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from find_texts(item)


def join_names(names: tuple[str, ...]) -> str:
    """Join names for a path: the first four, and the number of the others, to limit its length."""
    shown = "+".join(names[:4])
    return f"{shown}+{len(names) - 4}more" if len(names) > 4 else shown


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
