"""Parts of the identities of nodes, and the limits on data in them. Standard library only."""

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
    """Return references to nodes, for the identity of a node that reads them."""
    return [node.reference for node in nodes]


def drop_empty_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Drop None, False, 0 and empty values, which identities omit."""
    return {name: value for name, value in values.items() if value}


def find_texts(value: Any) -> Iterator[str]:
    """Yield every string in nested plain values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from find_texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from find_texts(item)


def join_path_names(names: tuple[str, ...]) -> str:
    """Join up to four names for a path, and append the number of omitted names."""
    shown = "+".join(names[:4])
    return f"{shown}+{len(names) - 4}more" if len(names) > 4 else shown


def collect_limits(identity: Any) -> dict[str, int]:
    """Return the integers in an identity whose keys begin with ``limit``, by key path.

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
