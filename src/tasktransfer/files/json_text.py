"""Read JSON so that every text which cannot be used raises ValueError, and nothing else.

Python's own reader raises RecursionError for deep nesting, speaks of an interpreter setting where a
number has thousands of digits, and lets through halves of surrogate pairs, which no file can hold.
Standard library only.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from tasktransfer.files.regular import open_regular, read_regular

MAX_BYTES = 4 * 2**20
"""Of a file that ``read`` reads: a record has some ten thousand bytes."""

_MAYBE_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_MAYBE_HALF_TEXT = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")


def read(path: Path) -> Any:
    """The value of a JSON file of at most ``MAX_BYTES``.

    Raises:
        OSError: it cannot be read.
        ValueError: as ``loads``, or the file is larger.
    """
    return loads(read_bytes(path))


def read_object(path: Path) -> dict[str, Any]:
    """The object that a JSON file of any size holds; empty where none can be read."""
    try:
        value = loads(read_regular(path))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def read_bytes(path: Path) -> bytes:
    """The content of a file of at most ``MAX_BYTES``.

    Raises:
        OSError: it cannot be read.
        ValueError: the file is larger.
    """
    with open_regular(path) as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
    return content


def loads(content: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is broken (``json.JSONDecodeError``), no UTF-8 (``UnicodeDecodeError``),
            nested too deeply, or has a number or character that nothing can hold.
    """
    try:
        value = json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError:
        raise ValueError("a number in it has thousands of digits") from None
    if isinstance(content, bytes):
        maybe_half = _MAYBE_HALF.search(content) is not None
    else:
        maybe_half = _MAYBE_HALF_TEXT.search(content) is not None
    if maybe_half:
        _refuse_halves(value)
    return value


def printed(value: Any, indent: int | None = None, *, ensure_ascii: bool = True) -> str:
    """A value as JSON for other programs. Numbers that JSON has not (NaN, infinity) are null, which
    every reader understands."""
    return json.dumps(_finite(value), indent=indent, ensure_ascii=ensure_ascii, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _refuse_halves(value: Any) -> None:
    """Raise for a text with half of a surrogate pair, naming its place."""
    left: list[tuple[str, Any]] = [("", value)]
    while left:
        path, value = left.pop()
        if isinstance(value, str) and _HALF.search(value):
            raise ValueError(
                f"{path.lstrip('.')}: {ascii(value)[:60]} holds half of a surrogate pair, which is "
                "no character: write the whole character"
            )
        if isinstance(value, dict):
            left += [(path, key) for key in value]
            left += [(f"{path}.{key}", item) for key, item in value.items()]
        elif isinstance(value, list):
            left += [(f"{path}[{index}]", item) for index, item in enumerate(value)]
