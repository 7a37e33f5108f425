"""Nodes as JSON for jobs, which check it before they compute anything.

Fields at their default are omitted, so that command lines stay short and old JSON stays readable.
The digests of cards, which all data of a node contain, are omitted, too: a job has the cards
themselves. If they differ from those of the plan, the node's digest differs from the folder's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from tasktransfer.core.ancestors import add_ancestors
from tasktransfer.core.cards import CardsOf, replace_cards
from tasktransfer.core.nodes import Data, Evaluation, Fit, Stage
from tasktransfer.errors import ConfigError

MOST_LEVELS = 40
"""Maximum nesting of nodes and their parts. No method has as many steps."""

_REMEDY = "Pass JSON that node_json.to_json has written"

AnyNode = TypeVar("AnyNode", Data, Stage, Fit, Evaluation)


_NOUNS: dict[type[Any], str] = {
    Data: "data",
    Stage: "stage",
    Fit: "fit",
    Evaluation: "evaluation",
}


def to_json(node: Any) -> Any:
    """Convert a node, or a part of one, with everything that it uses to plain JSON values."""
    kind = type(node)
    if kind in (str, int, float, bool, type(None)):
        return node
    if is_dataclass(kind):
        return {
            name: to_json(value)
            for name, default in _list_fields(kind)
            if (value := getattr(node, name)) != default
        }
    if isinstance(node, tuple | list):
        return [to_json(item) for item in node]
    return dict(node) if isinstance(node, Mapping) else node


@cache
def _list_fields(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """Return name and default of each field. Cached, because there are thousands of stages."""
    return tuple(
        (f.name, f.default if f.default_factory is MISSING else f.default_factory())
        for f in fields(kind)
        if f.metadata.get("told", True)
    )


def from_json(
    kind: type[AnyNode], value: Any, source: str, cards_of: CardsOf | None = None
) -> AnyNode:
    """Convert the JSON values of ``to_json`` back to a node.

    Args:
        source: name of the JSON in messages.
        cards_of: function like ``datasets.get_card_digests``; None to take the cards from the JSON.

    Raises:
        ConfigError: the values are not a node; the message names key and value.
    """
    from pydantic import ValidationError  # noqa: PLC0415  # the Snakefile imports this module

    noun = _NOUNS[kind]
    if not isinstance(value, dict):
        raise ConfigError(
            f"{source}: This is not a {noun} (found a {type(value).__name__}, expected an "
            f"object). {_REMEDY}."
        )
    if _measure_depth(value) > MOST_LEVELS:
        raise ConfigError(
            f"{source}: This is not a {noun} (nested more than {MOST_LEVELS} levels deep). "
            f"{_REMEDY}."
        )
    try:
        node: AnyNode = _build_adapter(noun).validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(str(part) for part in problem["loc"])
        raise ConfigError(
            f"{source}: This is not a {noun} ({key}: {problem['msg']}, found "
            f"{str(problem['input'])[:80]!r}). {_REMEDY}."
        ) from error
    for stage in add_ancestors((node,)):
        if isinstance(stage, Stage) and (impossible := _find_impossible_value(stage)):
            raise ConfigError(f"{source}: This is not a {noun} ({impossible}). {_REMEDY}.")
    return node if cards_of is None else replace_cards((node,), cards_of)[0]


def _find_impossible_value(stage: Stage) -> str | None:
    """Return a problem of values that have the right type but are out of range, or None."""
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
def _build_adapter(noun: str) -> Any:
    from pydantic import TypeAdapter  # noqa: PLC0415

    # The nodes' modules import each other for type checking only. pydantic looks the names up in
    # the scope where an adapter is made.
    from tasktransfer.core.nodes import Node  # noqa: F401, PLC0415

    return TypeAdapter(next(kind for kind, name in _NOUNS.items() if name == noun))


def _measure_depth(value: Any) -> int:
    """Return the nesting depth of objects and lists, counted to just above the maximum."""
    level, depth = [value], 0
    while level and depth <= MOST_LEVELS:
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict | list):
                inner += item.values() if isinstance(item, dict) else item
        level, depth = inner, depth + 1
    return depth
