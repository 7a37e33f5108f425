"""What pydantic finds wrong with a value, in words: key path, value, what is expected, remedy.

The types declare once what is allowed; what is expected and which name was probably meant is read
off the JSON schema that pydantic makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

Schema = dict[str, Any]
Place = tuple[str | int, ...]

STRICT = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
"""No unknown key, no value of another type, no NaN. ``frozen`` is of models only."""

MAX_PROBLEMS = 100
"""A file of something else is wrong in every line; nobody reads more."""

_SEVERAL = "several_problems"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where (a key path such as ``datasets.Friends.tasks[1]``) and what,
    with the value and the remedy."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def at(path: str, key: str | int) -> str:
    """The path of an item (number) or key below ``path``."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def show(value: Any) -> str:
    """A value as a message shows it, in YAML's words and cut to a readable length."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = str(value) if isinstance(value, date) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(name: str, names: Iterable[str]) -> str:
    """`` (did you mean 'x'?)``, or nothing. Compared without case: "friends" is a likely slip."""
    by_casefold = {each.casefold(): each for each in names}
    close = get_close_matches(name.casefold(), by_casefold, n=1, cutoff=0.5)
    return f" (did you mean {by_casefold[close[0]]!r}?)" if close else ""


def unknown(what: str, name: Any, names: Sequence[str], hint: str | None = None) -> str:
    """The message about a name that is none of ``names``; ``hint`` instead of the nearest one."""
    meant = nearest(name, names) if isinstance(name, str) else ""
    advice = f" ({hint})" if hint else meant
    return f"unknown {what} {show(name)}{advice}; expected one of {', '.join(names)}"


def refuse(problems: Iterable[tuple[str, str]]) -> None:
    """For validators: raise if there are problems, each a path and a message. A path that begins
    with ``.`` or ``[`` or is empty is below the validated value, any other is a whole one."""
    listed = list(problems)
    if listed:
        told = "; ".join(message for _, message in listed)
        raise PydanticCustomError(_SEVERAL, "{told}", {"told": told, "problems": listed})


def problems_of(
    error: ValidationError, value: Any, schema: Callable[[], Schema]
) -> Iterator[Problem]:
    """What is wrong with ``value``, each thing once.

    Args:
        error: as pydantic raised it. Of a value that may be of several types it tells all of them:
            kept is what is said of the type that the value has.
        value: what was validated.
        schema: makes the JSON schema of the type; called only if it is needed.
    """
    by_place: dict[Place, ErrorDetails] = {}
    for details in error.errors(include_url=False, include_input=False):
        place = _place(details, value)
        if place not in by_place or _is_of_another_type(by_place[place]):
            by_place[place] = details
    outer = {place[:depth] for place in by_place for depth in range(len(place))}
    root = schema() if by_place else {}
    for place, details in by_place.items():
        if place not in outer or details["type"] == _SEVERAL:
            yield from _worded(details, place, value, root)


def wrong_type(adapter: TypeAdapter[Any], value: Any) -> str | None:
    """The first thing that is wrong with a value or its parts, with its key path; None if nothing
    is. The value itself stays as it is."""
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        return str(next(problems_of(error, value, adapter.json_schema)))
    return None


def _place(details: ErrorDetails, value: Any) -> Place:
    """Keys and indices, without the names of types that pydantic puts between them."""
    place: list[str | int] = []
    for part in details["loc"]:
        if part in (value if isinstance(value, dict) else _indices(value)):
            value = value[part]
        elif details["type"] != "missing" or part is not details["loc"][-1]:
            continue
        place.append(part)
    return tuple(place)


def _path(place: Place, value: Any) -> str:
    path = ""
    for part in place:
        path = at(path, part if isinstance(value, list) else str(part))
        value = value.get(part) if isinstance(value, dict) else value[part]
    return path


def _indices(value: Any) -> range:
    return range(len(value)) if isinstance(value, list) else range(0)


def _is_of_another_type(details: ErrorDetails) -> bool:
    return details["type"].endswith("_type") or details["type"] == "none_required"


def _worded(details: ErrorDetails, place: Place, value: Any, root: Schema) -> Iterator[Problem]:
    path = _path(place, value)
    kind = details["type"]
    if kind == _SEVERAL:
        for below, message in details["ctx"]["problems"]:
            whole = path + below if below[:1] in ("", ".", "[") else below
            yield Problem(whole.lstrip("."), message)
    elif kind == "missing":
        helps = [node["description"] for node in _nodes(root, place) if "description" in node]
        yield Problem(path, ": ".join(["is missing", *helps[:1]]))
    elif kind in ("extra_forbidden", "invalid_key"):
        names = [name for node in _nodes(root, place[:-1]) for name in node.get("properties", ())]
        yield Problem(path, unknown("key", place[-1], names))
    elif kind in ("value_error", "assertion_error"):
        yield Problem(path, details["msg"].removeprefix("Value error, "))
    else:
        yield Problem(path, _unexpected(_inside(value, place), _nodes(root, place)))


def _inside(value: Any, place: Place) -> Any:
    for part in place:
        value = value[part]
    return value


def _unexpected(value: Any, nodes: list[Schema]) -> str:
    """``found ..., expected ...``, of the types that the value may have, its own if it is one."""
    own = [node for node in nodes if _fits(node, value)]
    if isinstance(value, list) and own:
        return _wrong_length(len(value), own[0])
    expected = " or ".join(dict.fromkeys(map(_expected, own or nodes)))
    advice = ""
    if isinstance(value, str):
        advice = nearest(value, [n for node in nodes for n in _names(node) if isinstance(n, str)])
    elif isinstance(value, (int, float, date)) and expected == "text":
        advice = "; put it in quotes"
    return f"found {show(value)}, expected {expected}{advice}"


def _wrong_length(length: int, node: Schema) -> str:
    least = node.get("minItems", 0)
    if length < least:
        return (
            f"has {length} items, expected {least} at least: name {'one' if least == 1 else 'more'}"
        )
    return f"has {length:,} items, expected {node.get('maxItems', 0):,} at most: remove some"


# --- the JSON schema of the type ------------------------------------------------------------------


def _nodes(root: Schema, place: Place) -> list[Schema]:
    """What the schema says of a place: a node for each type that is allowed there."""
    nodes = list(_alternatives(root, root))
    for part in place:
        nodes = [
            inner
            for node in nodes
            for child in _children(node, part)
            for inner in _alternatives(child, root)
        ]
    return nodes


def _alternatives(node: Schema, root: Schema) -> Iterator[Schema]:
    if "$ref" in node:
        target = root["$defs"][node["$ref"].rpartition("/")[2]]
        node = target | {key: said for key, said in node.items() if key != "$ref"}
    if "anyOf" not in node:
        yield node
    for option in node.get("anyOf", ()):
        above = {"description": node["description"]} if "description" in node else {}
        yield from _alternatives(option | above, root)


def _children(node: Schema, part: str | int) -> Iterator[Schema]:
    if isinstance(part, int) and "items" in node:
        yield node["items"]
    elif part in node.get("properties", ()):
        yield node["properties"][part]
    elif isinstance(node.get("additionalProperties"), dict):
        yield node["additionalProperties"]


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def _fits(node: Schema, value: Any) -> bool:
    types = _TYPES.get(node.get("type", ""), ())
    return isinstance(value, types) and (not isinstance(value, bool) or types == (bool,))


def _names(node: Schema) -> list[Any]:
    return [node["const"]] if "const" in node else node.get("enum", [])


def _expected(node: Schema) -> str:
    if _names(node):
        names = ", ".join(map(str, _names(node)))
        return names if "const" in node else f"one of {names}"
    match node.get("type"):
        case "string":
            return f"text that matches {node['pattern']}" if "pattern" in node else "text"
        case "integer":
            return "a whole number" + _bounds(node)
        case "number":
            return "a finite number" + _bounds(node)
        case "boolean":
            return "true or false"
        case "null":
            return "null"
        case "array":
            return "a list"
        case "object":
            return "a mapping (key: value)"
        case _:
            return "another value"


def _bounds(node: Schema) -> str:
    parts = []
    if "minimum" in node:
        parts.append(f" of {node['minimum']:,g} or more".replace(",", ""))
    if "exclusiveMinimum" in node:
        parts.append(f" above {node['exclusiveMinimum']:g}")
    if "maximum" in node:
        parts.append(f", {node['maximum']:,} at most")
    return "".join(parts)
