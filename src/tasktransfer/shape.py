"""Checks and JSON schemas of plain JSON values, both made from the same TypedDicts.

A TypedDict says which keys an object has (``NotRequired`` ones may be left out); ``Annotated``
adds limits (the classes below) and a description (a plain string). ``checker`` turns it into a
function that is fast enough for thousands of files, ``json_schema`` into a schema that other tools
read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

Checker = Callable[[Any], str | None]
"""Takes a value; gives None, or what is wrong as ``key: found ..., expected ...``."""


@dataclass(frozen=True, slots=True)
class Matches:
    """A string that the pattern matches."""

    pattern: str


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A finite number not below the minimum."""

    minimum: float


@dataclass(frozen=True, slots=True)
class Within:
    """A finite number between the two bounds, bounds included."""

    minimum: float
    maximum: float


@dataclass(frozen=True, slots=True)
class Finite:
    """A number that is neither NaN nor infinite. Every float is checked for this anyway; the mark
    only makes it readable where a type is declared."""


Limit = Matches | AtLeast | Within | Finite


def checker(shape: Any) -> Checker:
    """Compile a TypedDict (or any type it may hold) into a check of JSON values."""
    bare, limits, _ = _unwrap(shape)
    base = _base_checker(bare)
    for limit in limits:
        base = _both(base, _limit_checker(limit))
    return base


def json_schema(shape: Any) -> dict[str, Any]:
    """The JSON schema of the same type."""
    bare, limits, description = _unwrap(shape)
    schema = _base_schema(bare)
    for limit in limits:
        schema.update(_limit_schema(limit))
    if description:
        schema["description"] = description
    return schema


def _unwrap(shape: Any) -> tuple[Any, list[Limit], str]:
    """Type without Annotated, its limits, its description (the outermost string)."""
    if get_origin(shape) is not Annotated:
        return shape, [], ""
    bare, *marks = get_args(shape)
    limits = [mark for mark in marks if isinstance(mark, Limit)]
    texts = [mark for mark in marks if isinstance(mark, str)]
    return bare, limits, texts[-1] if texts else ""


def _base_checker(bare: Any) -> Checker:
    origin, inner = get_origin(bare), get_args(bare)
    if is_typeddict(bare):
        return _object_checker(get_type_hints(bare, include_extras=True))
    if origin is Literal:
        return _choice_checker(inner)
    if origin is list:
        return _list_checker(checker(inner[0]))
    if origin is dict:
        return _mapping_checker(checker(inner[1]))
    if origin in (Union, UnionType):
        (present,) = [checker(choice) for choice in inner if choice is not NoneType]
        return lambda value: None if value is None else present(value)
    return _PLAIN[bare]


def _object_checker(hints: dict[str, Any]) -> Checker:
    checks = {key: checker(_present(hint)) for key, hint in hints.items()}
    needed = {key for key, hint in hints.items() if not _may_be_absent(hint)}

    def check(value: Any) -> str | None:
        if type(value) is not dict:
            return _found(value, "an object")
        if not needed <= value.keys() <= checks.keys():
            return _wrong_keys(value, checks, needed)
        for key, part in checks.items():
            problem = part(value[key]) if key in value else None
            if problem:
                return _at(key, problem)
        return None

    return check


def _may_be_absent(hint: Any) -> bool:
    return get_origin(hint) is NotRequired


def _present(hint: Any) -> Any:
    """The type of a key where it is there."""
    return get_args(hint)[0] if _may_be_absent(hint) else hint


def _wrong_keys(value: dict[str, Any], checks: dict[str, Checker], needed: set[str]) -> str:
    missing = [key for key in checks if key in needed and key not in value]
    if missing:
        return f"{missing[0]}: missing key"
    unknown = next(key for key in value if key not in checks)
    return f"{unknown}: unknown key; known: {', '.join(checks)}"


def _mapping_checker(part: Checker) -> Checker:
    def check(value: Any) -> str | None:
        if type(value) is not dict:
            return _found(value, "an object")
        for key, item in value.items():
            problem = part(item)
            if problem:
                return _at(key, problem)
        return None

    return check


def _list_checker(part: Checker) -> Checker:
    def check(value: Any) -> str | None:
        if type(value) is not list:
            return _found(value, "a list")
        for index, item in enumerate(value):
            problem = part(item)
            if problem:
                return _at(f"[{index}]", problem)
        return None

    return check


def _choice_checker(choices: tuple[Any, ...]) -> Checker:
    def check(value: Any) -> str | None:
        if type(value) in (str, int) and value in choices:
            return None
        return _found(value, "one of " + ", ".join(map(str, choices)))

    return check


def _text(value: Any) -> str | None:
    return None if type(value) is str else _found(value, "a string")


def _flag(value: Any) -> str | None:
    return None if type(value) is bool else _found(value, "true or false")


def _whole(value: Any) -> str | None:
    return None if type(value) is int else _found(value, "a whole number")


def _real(value: Any) -> str | None:
    if type(value) is float and math.isfinite(value):
        return None
    return None if type(value) is int else _found(value, "a finite number")


def _anything(value: Any) -> str | None:
    """Any JSON value, as long as its numbers are finite."""
    if type(value) is float:
        return _real(value)
    if type(value) is dict:
        return _any_object(value)
    if type(value) is list:
        return _any_list(value)
    if value is None or type(value) in (str, int, bool):
        return None
    return _found(value, "a JSON value")


_any_object = _mapping_checker(_anything)
_any_list = _list_checker(_anything)
_PLAIN: dict[Any, Checker] = {
    str: _text,
    bool: _flag,
    int: _whole,
    float: _real,
    Any: _anything,
}
_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def _limit_checker(limit: Limit) -> Checker:
    """A limit of a value whose type is right already."""
    match limit:
        case Matches(pattern):
            find = re.compile(pattern).search
            return lambda v: None if find(v) else _found(v, f"a match of {pattern}")
        case AtLeast(low):
            return lambda v: None if v >= low else _found(v, f"at least {low}")
        case Within(low, high):
            return lambda v: None if low <= v <= high else _found(v, f"between {low} and {high}")
        case Finite():
            return lambda v: None


def _both(first: Checker, second: Checker) -> Checker:
    return lambda value: first(value) or second(value)


def _base_schema(bare: Any) -> dict[str, Any]:
    origin, inner = get_origin(bare), get_args(bare)
    if is_typeddict(bare):
        hints = get_type_hints(bare, include_extras=True)
        return {
            "type": "object",
            "description": " ".join((bare.__doc__ or "").split()),
            "properties": {key: json_schema(_present(hint)) for key, hint in hints.items()},
            "required": [key for key, hint in hints.items() if not _may_be_absent(hint)],
            "additionalProperties": False,
        }
    if origin is Literal:
        return {"enum": list(inner)} if len(inner) > 1 else {"const": inner[0]}
    if origin is list:
        return {"type": "array", "items": json_schema(inner[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": json_schema(inner[1])}
    if origin in (Union, UnionType):
        kinds = [json_schema(choice) for choice in inner if choice is not NoneType]
        return {"anyOf": [*kinds, {"type": "null"}]}
    return {} if bare is Any else {"type": _JSON_TYPES[bare]}


def _limit_schema(limit: Limit) -> dict[str, Any]:
    match limit:
        case Matches(pattern):
            return {"pattern": pattern}
        case AtLeast(low):
            return {"minimum": low}
        case Within(low, high):
            return {"minimum": low, "maximum": high}
        case Finite():
            return {}


def _at(key: str, problem: str) -> str:
    """Put a key in front of a problem: ``epochs[3].seconds: found ...``."""
    joiner = "" if problem.startswith("[") else (": " if problem.startswith("found ") else ".")
    return f"{key}{joiner}{problem}"


def _found(value: Any, expected: str) -> str:
    text = repr(value)
    return f"found {text if len(text) <= 60 else text[:57] + '...'}, expected {expected}"
