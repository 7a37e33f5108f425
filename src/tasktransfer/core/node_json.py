"""A node as JSON, as a job is told it: checked before anything is computed.

What is at its default is left out, so that command lines stay short and old JSON stays readable.
So are the digests of cards, which are in every data of a node: a job has the cards themselves, and
where they are not those of the plan, its node has another digest than the folder that it is given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from tasktransfer.core.ancestors import with_ancestors
from tasktransfer.core.cards import CardsOf, with_cards
from tasktransfer.core.nodes import Data, Evaluation, Fit, Stage
from tasktransfer.errors import ConfigError

MOST_LEVELS = 40
"""Nodes and their parts may be nested so deeply: more than any method has steps."""

AnyNode = TypeVar("AnyNode", Data, Stage, Fit, Evaluation)


_NOUNS: dict[type[Any], str] = {
    Data: "data",
    Stage: "stage",
    Fit: "fit",
    Evaluation: "evaluation",
}


def to_json(node: Any) -> Any:
    """A node, or any part of one, with everything that it uses, as plain JSON values."""
    kind = type(node)
    if kind in (str, int, float, bool, type(None)):
        return node
    if is_dataclass(kind):
        return {
            name: to_json(value)
            for name, default in _fields(kind)
            if (value := getattr(node, name)) != default
        }
    if isinstance(node, tuple | list):
        return [to_json(item) for item in node]
    return dict(node) if isinstance(node, Mapping) else node


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """Name and default of each field; once a class, since thousands of stages are told."""
    return tuple(
        (f.name, f.default if f.default_factory is MISSING else f.default_factory())
        for f in fields(kind)
        if f.metadata.get("told", True)
    )


def from_json(
    kind: type[AnyNode], value: Any, source: str, cards_of: CardsOf | None = None
) -> AnyNode:
    """The node that ``to_json`` gave.

    Args:
        source: names it in messages.
        cards_of: as ``datasets.card_digests``; None: the node has the cards of the JSON, or none.

    Raises:
        ConfigError: it is none; the message names key and value.
    """
    from pydantic import ValidationError  # noqa: PLC0415  # the Snakefile imports this module

    noun = _NOUNS[kind]
    if not isinstance(value, dict):
        raise ConfigError(
            f"{source}: no {noun}: found a {type(value).__name__}, expected an object; "
            "give what node_json.to_json made"
        )
    if _depth(value) > MOST_LEVELS:
        raise ConfigError(f"{source}: no {noun}: it is nested more than {MOST_LEVELS} levels deep")
    try:
        node: AnyNode = _adapter(noun).validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(str(part) for part in problem["loc"])
        raise ConfigError(
            f"{source}: no {noun}: {key}: {problem['msg']}, found {str(problem['input'])[:80]!r}; "
            "give what node_json.to_json made"
        ) from error
    for stage in with_ancestors((node,)):
        if isinstance(stage, Stage) and (impossible := _impossible(stage)):
            raise ConfigError(
                f"{source}: no {noun}: {impossible}; give what node_json.to_json made"
            )
    return node if cards_of is None else with_cards((node,), cards_of)[0]


def _impossible(stage: Stage) -> str | None:
    """What of the values cannot be, though each is of the right type."""
    numbers = {
        "model.max_length": stage.model.max_length,
        "training.epochs": stage.training.epochs,
        "training.batch_size": stage.training.batch_size,
        "seed": stage.seed + 1,
    }
    for key, number in numbers.items():
        if number < 1:
            return f"{key}: found {number - (key == 'seed')}, which is too small"
    empty = {
        "train_tasks": stage.train_tasks,
        "selection.tasks": stage.selection.tasks,
        "data.name": stage.data.name,
        "label": stage.label,
    }
    return next((f"{key}: is empty" for key, value in empty.items() if not value), None)


@cache
def _adapter(noun: str) -> Any:
    from pydantic import TypeAdapter  # noqa: PLC0415

    # Nodes use one another across their modules, where these names are known to type checkers
    # alone: pydantic looks them up where an adapter is made.
    from tasktransfer.core.nodes import Node  # noqa: F401, PLC0415

    return TypeAdapter(next(kind for kind, name in _NOUNS.items() if name == noun))


def _depth(value: Any) -> int:
    """Levels of objects and lists, counted to just beyond what is allowed."""
    level, depth = [value], 0
    while level and depth <= MOST_LEVELS:
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict | list):
                inner += item.values() if isinstance(item, dict) else item
        level, depth = inner, depth + 1
    return depth
