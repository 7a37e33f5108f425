"""Read JSON so that every unusable text raises ValueError and no other error.

Python's own reader raises RecursionError for deep nesting. For a number with thousands of digits
its message is about an interpreter setting. It accepts halves of surrogate pairs, which no file can
contain, and keeps the last of several values of one key. The header of a safetensors file is JSON,
too. Standard library only.
"""

from __future__ import annotations

import json
import math
import re
import struct
from pathlib import Path
from typing import Any

from tasktransfer.files.untrusted import open_regular, read_regular

MAX_BYTES = 4 * 2**20
"""Maximum size of a file for ``read``. A record has about ten thousand bytes."""

_BLANK = re.compile(r"[ \t\n\r]*")
_MARK = re.compile(r'(?P<key>"(?:[^"\\]|\\.)*")(?P<colon>[ \t\n\r]*:)?|[{}]', re.DOTALL)
"""A text, which is a key if a colon follows, or the start or end of an object."""
_MAYBE_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")


def read(path: Path) -> Any:
    """Read the value in a JSON file of at most ``MAX_BYTES``.

    Raises:
        OSError: the file cannot be read.
        ValueError: as in ``loads``, or the file is larger.
    """
    return loads(read_bytes(path))


def read_object(path: Path) -> dict[str, Any]:
    """Read the object in a JSON file, or return an empty object if it is unreadable."""
    try:
        value = loads(read_regular(path))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def read_bytes(path: Path) -> bytes:
    """Read the content of a file of at most ``MAX_BYTES``.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is larger.
    """
    with open_regular(path) as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"the text is larger than {MAX_BYTES:,} bytes")
    return content


class DuplicateKeyError(json.JSONDecodeError):
    """A key occurs twice in an object, and readers differ in the value that they use."""


def loads(content: str | bytes, *, keep_halves: bool = False) -> Any:
    """Parse a JSON text.

    Args:
        keep_halves: accept halves of surrogate pairs, for a caller that replaces them.

    Raises:
        ValueError: the text is broken (``json.JSONDecodeError``), not UTF-8
            (``UnicodeDecodeError``), nested too deeply, has a key twice in an object
            (``DuplicateKeyError``), or has a number or character that cannot be represented.
    """
    text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    value, end = decode(text, _skip_blank(text, 0), keep_halves=keep_halves)
    if (rest := _skip_blank(text, end)) < len(text):
        raise json.JSONDecodeError("Extra data", text, rest)
    return value


def _skip_blank(text: str, start: int) -> int:
    match = _BLANK.match(text, start)
    return match.end() if match else start


def decode(text: str, start: int, *, keep_halves: bool = False) -> tuple[Any, int]:
    """Decode the JSON value at ``start``, and return it with the position of its end.

    Raises:
        ValueError: as in ``loads``.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("the text is nested too deeply") from None
    except _TwiceError:
        raise _build_duplicate_key_error(text, start) from None
    except json.JSONDecodeError:
        raise
    except ValueError:
        raise ValueError("the text contains a number with thousands of digits") from None
    if not keep_halves and _MAYBE_HALF.search(text, start, end):
        _check_surrogates(value)
    return value, end


class _TwiceError(Exception):
    pass


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise _TwiceError
    return table


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_duplicate_keys)


def _build_duplicate_key_error(text: str, start: int) -> DuplicateKeyError:
    """Return the error for the first key that an object in a text repeats."""
    opened: list[dict[str, int]] = []
    for mark in _MARK.finditer(text, start):
        if mark[0] == "{":
            opened.append({})
        elif mark[0] == "}":
            opened.pop()
        elif mark["colon"]:
            key = json.loads(mark["key"])
            first = opened[-1].setdefault(key, mark.start())
            if first != mark.start():
                lines = text.count("\n", first, mark.start())
                where = f", {lines:,} line{'s' if lines > 1 else ''} above" if lines else ""
                message = f"the key {key!r:.60} is already in this object{where}"
                return DuplicateKeyError(message, text, mark.start())
    raise AssertionError("no key occurs twice")


def encode(value: Any, indent: int | None = None, *, ensure_ascii: bool = True) -> str:
    """Encode a value as JSON, with null for NaN and infinity."""
    return json.dumps(
        _replace_non_finite(value), indent=indent, ensure_ascii=ensure_ascii, allow_nan=False
    )


def _replace_non_finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _replace_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_non_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _check_surrogates(value: Any) -> None:
    """Raise ValueError if a text in a value contains an unpaired surrogate."""
    left: list[tuple[str, Any]] = [("", value)]
    while left:
        path, value = left.pop()
        if isinstance(value, str) and _HALF.search(value):
            raise ValueError(
                f"{path.lstrip('.')}: The text {ascii(value)[:60]} contains half of a surrogate "
                "pair, which is not a character. Write the whole character."
            )
        if isinstance(value, dict):
            left += [(path, key) for key in value]
            left += [(f"{path}.{key}", item) for key, item in value.items()]
        elif isinstance(value, list):
            left += [(f"{path}[{index}]", item) for index, item in enumerate(value)]


LONGEST_HEADER = 100_000_000
"""Maximum number of bytes of a header, as in the safetensors library."""


def read_tensor_shapes(file: Path) -> dict[str, list[int]] | None:
    """Read the shapes of a safetensors file's tensors, or return None for a damaged file.

    Only the header is read: 8 bytes with the header's length, then JSON with type, shape and
    offsets of every tensor. A file that does not end where its last tensor ends is damaged.
    """
    try:
        with open_regular(file) as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > LONGEST_HEADER:
                return None
            header = loads(stream.read(length))
        header.pop("__metadata__", None)
        end = max((entry["data_offsets"][1] for entry in header.values()), default=0)
        whole = file.stat().st_size == 8 + length + end
        shapes = {name: [int(n) for n in entry["shape"]] for name, entry in header.items()}
        return shapes if whole else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, struct.error):
        return None
