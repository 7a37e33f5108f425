"""Replacement of the digests of task cards in nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from tasktransfer.core.nodes import Data, Evaluation, Fit, Outcome, Pool, Stage, Start

CardsOf = Callable[[str], Mapping[str, str]]
"""Dataset → task → digest of its card."""

AnyNode = TypeVar("AnyNode", bound=Data | Stage | Fit | Evaluation)


def replace_cards(nodes: Sequence[AnyNode], cards_of: CardsOf) -> tuple[AnyNode, ...]:
    """Return copies of nodes, in the same order, whose data have these cards."""
    done: dict[int, Any] = {}
    """id of an object → its copy, so that shared parts stay shared."""

    def change_card(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(change_card(item) for item in part)
        if not isinstance(part, Data | Stage | Fit | Evaluation | Outcome | Start | Pool):
            return part
        if id(part) not in done:
            values = {field.name: change_card(getattr(part, field.name)) for field in fields(part)}
            if isinstance(part, Data):
                values["cards"] = cards_of(part.name)
            done[id(part)] = replace(part, **values)
        return done[id(part)]

    return tuple(change_card(node) for node in nodes)
