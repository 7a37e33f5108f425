"""Lists and objects in the text of a cell: as JSON, or as Python or numpy prints them.

pandas writes a column of lists into a CSV as Python prints lists, ``['a', 'b']``, and a column of
numpy arrays without commas, ``['a' 'b']``, which Python itself would read as the one text ``'ab'``.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tasktransfer.files import json_text

MAX_CHARACTERS = 2**20
"""Maximum length of a cell that is read as a Python literal."""
MAX_DEPTH = 50
_TOKEN = re.compile(
    r"""\s+ | (?P<dtype>,\s*dtype=\w+) | (?P<text>'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
    | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?) | (?P<name>[A-Za-z]+)
    | (?P<opens>[\[{(]) | (?P<closes>[\]})]) | (?P<between>[,:])""",
    re.VERBOSE | re.DOTALL,
)
_STRUCTURE = re.compile(r"\s*(\[\s*['\"\[{\]]|\{\s*['\"}]|array\(\[)")
_NUMBERS = re.compile(r"\s*\[[-+.,\d\seE]*\]\s*")


def is_like_structure(text: str) -> bool:
    """Return whether a text begins like a list or object, or is a list of numbers.

    A bracket alone is not enough, because a turn may begin with [12:30].
    """
    return _STRUCTURE.match(text) is not None or _NUMBERS.fullmatch(text) is not None


def parse_structure(text: str) -> list[Any] | dict[str, Any]:
    """Parse the list or object that a text represents.

    Raises:
        ValueError: the text is neither JSON nor a Python literal, or is too large or too deep.
    """
    try:
        value = json_text.loads(text)
    except ValueError:
        value = _convert_literal(_parse_python_value(text), 0)
    if not isinstance(value, list | dict):
        raise ValueError("the text is neither a list nor an object")
    return value


def list_items(value: Any) -> list[Any] | None:
    """Return the items of a list, or of a text that represents a list, otherwise None.

    Values that represent a list are an object of lists, as ``datasets`` stores a list of objects,
    and a text that contains a list or an object of lists.
    """
    if isinstance(value, str) and is_like_structure(value):
        try:
            value = parse_structure(value)
        except ValueError:
            return None
    if isinstance(value, Mapping):
        lists = {k: v for k, v in value.items() if isinstance(v, list | tuple)}
        if not lists or len({len(v) for v in lists.values()}) > 1:
            return None
        return [dict(zip(lists, items, strict=True)) for items in zip(*lists.values(), strict=True)]
    return list(value) if isinstance(value, list | tuple) else None


def _parse_python_value(text: str) -> Any:
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"the text has more than {MAX_CHARACTERS:,} characters and is not JSON")
    try:
        return ast.literal_eval("".join(_insert_commas(text)))
    except (SyntaxError, TypeError, ValueError, MemoryError, RecursionError):
        raise ValueError("the text is neither JSON nor a Python list") from None


def _insert_commas(text: str) -> Iterator[str]:
    """Yield the tokens of a literal, adding missing commas between values."""
    end, before = 0, ""
    for token in _TOKEN.finditer(text):
        if token.start() != end:
            break
        end, kind, word = token.end(), token.lastgroup or "", token[0]
        if kind in ("", "dtype"):
            continue
        is_array = kind == "name" and word == "array"
        begins = kind in ("text", "number", "name", "opens")
        if begins and before in ("text", "number", "name", "closes"):
            yield ","
        if not is_array:
            yield "None" if kind == "name" and word.lower() == "nan" else word
        before = "" if is_array else kind
    if end != len(text):
        raise ValueError(f"the text {text[end : end + 10]!r} is not the beginning of a value")


def _convert_literal(value: Any, depth: int) -> Any:
    """Convert a literal to a JSON value. Raises ValueError for other values."""
    if depth > MAX_DEPTH:
        raise ValueError("the text is nested too deeply")
    if isinstance(value, list | tuple):
        return [_convert_literal(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {str(key): _convert_literal(item, depth + 1) for key, item in value.items()}
    if isinstance(value, str):
        value.encode()  # This raises a ValueError for half of a surrogate pair.
        return value
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError(f"a value of type {type(value).__name__} cannot be written as JSON")
