"""Readable messages for pydantic's errors: key path, value, valid values, remedy.

Pydantic reports the place and kind of a problem. The valid keys and their descriptions come from
the JSON schema that pydantic generates for the same types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from tasktransfer.errors import describe_wrong_value, escape_line, format_value, suggest_name

Schema = dict[str, Any]
KeyPath = tuple[str | int, ...]

STRICT = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
"""No unknown keys, no values of other types, no NaN. ``frozen`` has an effect on models only."""

MAX_PROBLEMS = 100
"""Maximum number of problems in a message. In a file of another kind every line is a problem."""

_SEVERAL = "several_problems"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a value.

    Attributes:
        path: key path, such as ``datasets.Friends.tasks[1]``.
        message: whole sentences with the value and the remedy.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{escape_line(self.path)}: {self.message}" if self.path else self.message


def extend_path(path: str, key: str | int) -> str:
    """Return the key path of an item (by index) or key below ``path``."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def describe_unknown(
    what: str, name: Any, names: Sequence[str], hint: str | None = None, *, owner: str | None = None
) -> str:
    """Return the message about a name that is not in ``names``, with a suggestion.

    Args:
        what: kind of thing that has the name.
        hint: sentence that replaces the suggestion of the nearest name.
        owner: name of the thing that has the names, such as a dataset with its tasks.
    """
    meant = suggest_name(name, names) if isinstance(name, str) else ""
    advice = f" {hint}" if hint else meant
    choices = f" Choose one of {', '.join(dict.fromkeys(names))}." if names else ""
    subject = f"The {what} {format_value(name)}" + (f" of {owner}" if owner else "")
    return f"{subject} is unknown.{advice}{choices}"


def raise_problems(problems: Iterable[tuple[str, str]]) -> None:
    """Raise an error that lists problems, if there are any.

    Args:
        problems: paths below the validated value (``.key`` or ``[0]``) with messages, in which
            ``{path}`` stands for the path of the value.
    """
    listed = list(problems)
    if listed:
        raise PydanticCustomError(_SEVERAL, "several problems", {"problems": listed})


def find_first_problem(adapter: TypeAdapter[Any], value: Any) -> str | None:
    """Find the first problem of a value or its parts, with its key path, or return None.

    The value is not changed.
    """
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        return str(next(list_problems(error, value, adapter.json_schema)))
    return None


def list_problems(
    error: ValidationError,
    value: Any,
    schema: Callable[[], Schema],
    path: str = "",
    renamed: Mapping[str, str] | None = None,
) -> Iterator[Problem]:
    """Yield the distinct problems of ``value``.

    Args:
        error: pydantic's error. For a union it has the problems of each type, of which only the
            problems of the value's own type are kept.
        value: the validated value.
        schema: function that returns the JSON schema of the type, with keys and descriptions.
        path: key path of the value.
        renamed: path of an old key, with ``[]`` for the items of a list → new name of the key.
    """
    by_key_path: dict[KeyPath, list[ErrorDetails]] = {}
    for details in error.errors(include_url=False, include_input=False):
        by_key_path.setdefault(_extract_key_path(details, value), []).append(details)
    outer = {key_path[:depth] for key_path in by_key_path for depth in range(len(key_path))}
    root = schema()
    for key_path, several in by_key_path.items():
        if key_path not in outer:
            own = [e for e in several if e["type"] not in _OF_ANOTHER_TYPE] or several
            place = _format_path(path, key_path, value)
            new_name = (renamed or {}).get(re.sub(r"\[\d+\]", "[]", place))
            yield from _describe_problems(own, key_path, value, root, place, new_name)


def _extract_key_path(details: ErrorDetails, value: Any) -> KeyPath:
    """Return an error's key path without the type names that pydantic inserts."""
    key_path: list[str | int] = []
    for part in details["loc"]:
        if part in (value if isinstance(value, dict) else _list_indices(value)):
            value = value[part]
        elif details["type"] != "missing" or part is not details["loc"][-1]:
            continue
        key_path.append(part)
    return tuple(key_path)


def _list_indices(value: Any) -> range:
    return range(len(value)) if isinstance(value, list) else range(0)


def _format_path(path: str, key_path: KeyPath, value: Any) -> str:
    for part in key_path:
        path = extend_path(path, part if isinstance(value, list) else str(part))
        value = value.get(part) if isinstance(value, dict) else value[part]
    return path


def _describe_problems(
    several: list[ErrorDetails],
    key_path: KeyPath,
    value: Any,
    root: Schema,
    path: str,
    new_name: str | None,
) -> Iterator[Problem]:
    first = several[0]
    if first["type"] == _SEVERAL:
        for below, message in first["ctx"]["problems"]:
            yield Problem((path + below).lstrip("."), message.replace("{path}", path))
    elif first["type"] == "value_error":
        yield Problem(path, first["msg"].removeprefix("Value error, "))
    elif first["type"] == "missing":
        helps = [
            node["description"] for node in _find_nodes(root, key_path) if "description" in node
        ]
        remedy = f"Add it ({helps[0]})." if helps else "Add it."
        yield Problem(path, f"The key is missing. {remedy}")
    elif first["type"] in ("extra_forbidden", "invalid_key") or first["loc"][-1:] == ("[key]",):
        keys = [key for node in _find_nodes(root, key_path[:-1]) for key in _list_keys(node)]
        if new_name in keys:
            shown = format_value(_get_value(value, key_path))
            remedy = f"Write {new_name}: {shown}"
            yield Problem(path, f"The key was renamed to {new_name}. {remedy}")
        else:
            yield Problem(path, describe_unknown("key", key_path[-1], keys))
    else:
        value = _get_value(value, key_path)
        expected = " or ".join(dict.fromkeys(map(_describe_expectation, several)))
        yield Problem(
            path, f"{describe_wrong_value(value, expected)}{_format_advice(several, value)}"
        )


def _get_value(value: Any, key_path: KeyPath) -> Any:
    for part in key_path:
        value = value[part]
    return value


_OF_ANOTHER_TYPE = {
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "none_required": "null",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping (key: value)",
    "model_type": "a mapping (key: value)",
    "literal_error": "{expected}",
}
_WORDS = _OF_ANOTHER_TYPE | {
    "finite_number": "a finite number",
    "greater_than": "a number greater than {gt:.12g}",
    "greater_than_equal": "a number of at least {ge:.12g}",
    "less_than": "a number less than {lt:.12g}",
    "less_than_equal": "a number of at most {le:.12g}",
    "too_short": "a list of {min_length} or more items",
    "too_long": "a list of at most {max_length:,} items",
    "string_too_short": "some text",
    "string_pattern_mismatch": "text that matches {pattern}",
    "union_tag_not_found": "a mapping with the key {discriminator}",
    "union_tag_invalid": "a mapping whose {discriminator} is one of {expected_tags}",
}
"""Kind of pydantic's error → noun phrase for valid values, with fields of the error's context."""


def _describe_expectation(details: ErrorDetails) -> str:
    context = details.get("ctx", {})
    words = _WORDS.get(details["type"])
    if words is None:
        return f"valid ({details['msg']})"
    if context.get("field_type") == "Dictionary":
        words = words.replace("a list of", "a mapping of")
    return words.format(**context)


def _format_advice(several: list[ErrorDetails], value: Any) -> str:
    """Return a sentence on how to correct a value, or "" without advice."""
    kinds = {details["type"] for details in several}
    if isinstance(value, str):
        choices = [
            name
            for each in several
            for name in re.findall(r"'([^']+)'", _describe_expectation(each))
        ]
        return suggest_name(value, choices) or (
            f" Write [{value}]." if "tuple_type" in kinds else ""
        )
    if kinds == {"string_type"} and isinstance(value, (int, float, date)):
        return " Put the value in quotes."
    return ""


def _find_nodes(root: Schema, key_path: KeyPath) -> list[Schema]:
    """Find the JSON schema's nodes for a key, one per allowed type."""
    nodes = _list_alternatives(root, root)
    for part in key_path:
        children = [node.get("properties", {}).get(part) for node in nodes]
        children += [node.get(key) for node in nodes for key in ("items", "additionalProperties")]
        children += [each for node in nodes for each in node.get("patternProperties", {}).values()]
        inner = [_list_alternatives(child, root) for child in children if isinstance(child, dict)]
        nodes = list(chain.from_iterable(inner))
    return nodes


def _list_alternatives(node: Schema, root: Schema) -> list[Schema]:
    if "$ref" in node:
        node = root["$defs"][node["$ref"].rpartition("/")[2]] | node
    several = (*node.get("anyOf", ()), *node.get("oneOf", ()))
    options = [_list_alternatives(option, root) for option in several]
    return [node, *chain.from_iterable(options)]


def _list_keys(node: Schema) -> Iterable[str]:
    names = node.get("propertyNames", {})
    return (*node.get("properties", ()), *names.get("enum", ()), *names.get("examples", ()))
