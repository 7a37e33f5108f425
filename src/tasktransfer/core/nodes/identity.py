"""What identities of nodes are made of. Pure, standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

SHORT = 12
"""Hex digits of a digest that stand in paths."""

Settings = Mapping[str, Any]


class _Referred(Protocol):
    @property
    def reference(self) -> Any: ...


def references(nodes: Iterable[_Referred]) -> list[Any]:
    """What stands for nodes in the identity of a node that reads them."""
    return [node.reference for node in nodes]


def stated(values: Mapping[str, Any]) -> dict[str, Any]:
    """What of some values is part of an identity: none that is empty or None."""
    return {name: value for name, value in values.items() if value}


def texts_in(value: Any) -> Iterator[str]:
    """Every text among plain values, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from texts_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)


def joined(names: tuple[str, ...]) -> str:
    """Names for a path: the first ones, and how many more, as a folder's name has a limit."""
    shown = "+".join(names[:4])
    return f"{shown}+{len(names) - 4}more" if len(names) > 4 else shown
