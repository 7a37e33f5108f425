"""Read YAML strictly, and within limits: nothing is taken for something else, nothing explodes.

PyYAML by itself silently takes the last of two equal keys, so that half of a study could go
missing unnoticed. It reads 010 as 8 and 1:30 as 90. And a few lines of aliases that hold aliases
become gigabytes, lists within lists exhaust Python's stack: so the events of a text, which come one
by one, are counted before anything is built from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tasktransfer.errors import ConfigError
from tasktransfer.validation import Problem, at, show

MAX_BYTES = 2**20
MAX_VALUES = 50_000
"""Most values of a text with its aliases written out; a study of every subset of sources has
30,000."""
MAX_DEPTH = 50
MAX_KEY = 200
MAX_DIGITS = 30

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser in C is ten times as fast; not every installation of PyYAML has it."""

UNREADABLE = object()
"""The value of a number that has a problem: of no type that anything expects."""

_TWO_READINGS = re.compile(r"[-+]?0[0-9_xb].*|.*[_:].*")
"""Numbers in YAML 1.1 that are other numbers, or text, in YAML 1.2: octal, hexadecimal, binary,
with underscores, and times of day in base 60."""
_INTEGER, _FLOAT, _MERGE = (f"tag:yaml.org,2002:{name}" for name in ("int", "float", "merge"))


@dataclass(frozen=True, slots=True)
class Document:
    """The value of a YAML text, and the line (from 1) on which each key path stands."""

    value: Any
    lines: dict[str, int]


class _UnreadableError(Exception):
    """Why a text is refused, and on which line (from 1; None: as a whole)."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


def read(path: Path, problems: list[Problem]) -> Document:
    """Read a YAML file; duplicate keys and numbers with two readings go into ``problems``.

    Raises:
        ConfigError: no such file, unreadable, not YAML (with the line), or beyond the limits.
    """
    try:
        return _document(_text(path), problems)
    except _UnreadableError as error:
        where = f"{path}:{error.line}" if error.line else str(path)
        raise ConfigError(f"{where}: {error}") from error


def value_of(text: str, source: str) -> Any:
    """The value of a YAML text that ``source``, for example an option, gives.

    Raises:
        ConfigError: as ``read``, and for what goes into ``problems`` there.
    """
    problems: list[Problem] = []
    try:
        value = _document(text, problems).value
    except _UnreadableError as error:
        raise ConfigError(f"{source}: {error}") from error
    for problem in problems:
        raise ConfigError(f"{source}: {problem}")
    return value


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise _UnreadableError("no such file; give the path of a study's YAML file") from error
    except (OSError, ValueError) as error:
        raise _UnreadableError(f"cannot be read ({error})") from error
    if len(content) > MAX_BYTES:
        raise _UnreadableError(f"is larger than {MAX_BYTES:,} bytes; is it a study?")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _UnreadableError(f"cannot be read ({error}); it must be UTF-8 text") from error


def _document(text: str, problems: list[Problem]) -> Document:
    loader = None
    try:
        _measure(yaml.parse(text, Loader=Loader))
        loader = Loader(text)
        node = loader.get_single_node()
        document = Document(None, {})
        value = _plain(loader, node, "", document.lines, problems) if node else None
        return Document(value, document.lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = f"not valid YAML: {error.problem or error.context}"
        raise _UnreadableError(reason, mark.line + 1 if mark else None) from error
    except yaml.YAMLError as error:
        raise _UnreadableError(f"not valid YAML: {error}") from error
    except ValueError as error:
        # PyYAML lets impossible dates (2022-99-99) escape as a bare ValueError.
        raise _UnreadableError(f"a value cannot be read ({error}); put it in quotes") from error
    finally:
        if loader is not None:
            loader.dispose()


# --- limits -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Extent:
    """How much a value is: values in it, itself included, and levels, aliases written out."""

    anchor: str | None
    values: int = 1
    levels: int = 0

    def take(self, part: _Extent) -> None:
        self.values += part.values
        self.levels = max(self.levels, part.levels + 1)


def _measure(events: Iterator[Any]) -> None:
    """Refuse a text by its events: too deep, too many values with aliases written out, or a tag.

    Counted from the events, one by one, so that the refusal comes before the harm.
    """
    anchored: dict[str | None, _Extent] = {}
    around = [_Extent(None)]
    total = 0
    for event in events:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.CollectionEndEvent):
            part = around.pop()
        elif isinstance(event, yaml.AliasEvent):
            if any(outer.anchor == event.anchor for outer in around):
                raise _UnreadableError(f"not valid YAML: *{event.anchor} holds itself", line)
            part = anchored.get(event.anchor, _Extent(None))
            total += part.values
        elif isinstance(event, yaml.NodeEvent):
            _refuse_tag(event, line)
            part = _Extent(event.anchor)
            total += 1
        else:
            continue
        if isinstance(event, yaml.CollectionStartEvent):
            around.append(part)
        else:
            around[-1].take(part)
            anchored |= {part.anchor: part} if part.anchor else {}
        if len(around) + part.levels > MAX_DEPTH:
            raise _UnreadableError(f"is nested more than {MAX_DEPTH} levels deep", line)
        if total > MAX_VALUES:
            raise _UnreadableError(
                f"holds more than {MAX_VALUES:,} values with its aliases written out", line
            )


def _refuse_tag(event: Any, line: int) -> None:
    if event.tag is not None:
        raise _UnreadableError(
            f"the tag {show(event.tag)} cannot be used: write the value alone, text in quotes", line
        )


# --- values -------------------------------------------------------------------------------------


def _plain(
    loader: Any, node: yaml.Node, path: str, lines: dict[str, int], problems: list[Problem]
) -> Any:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        _refuse_repeated_keys(loader, node, path, lines, problems)
        loader.flatten_mapping(node)
        result: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = _key(loader, key_node)
            here = at(path, str(key))
            lines[here] = key_node.start_mark.line + 1
            result[key] = _plain(loader, value_node, here, lines, problems)
        return result
    if isinstance(node, yaml.SequenceNode):
        return [
            _plain(loader, item, at(path, index), lines, problems)
            for index, item in enumerate(node.value)
        ]
    return _scalar(loader, node, path, problems)


def _scalar(loader: Any, node: yaml.Node, path: str, problems: list[Problem]) -> Any:
    """A value that is no collection; a number only if everybody reads it as the same number."""
    text = node.value
    is_number = node.tag in (_INTEGER, _FLOAT)
    if is_number and len(text) > MAX_DIGITS:
        message = f"found {show(text)}, a number of {len(text):,} digits: write fewer"
        problems.append(Problem(path, message))
        return UNREADABLE
    value = loader.construct_object(node)
    if is_number and _TWO_READINGS.fullmatch(text):
        message = (
            f"found {text}, which YAML reads as {show(value)}: write a number in decimal digits "
            "alone, without leading zeros, '_' or ':', and text in quotes"
        )
        problems.append(Problem(path, message))
        return UNREADABLE
    return value


def _key(loader: Any, node: yaml.Node) -> Any:
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.ScalarNode):
        raise _UnreadableError("not valid YAML: a key must be a name", line)
    if len(node.value) > MAX_KEY:
        raise _UnreadableError(f"the key {show(node.value)} is longer than any of a study", line)
    return loader.construct_object(node)


def _refuse_repeated_keys(
    loader: Any,
    node: yaml.MappingNode,
    path: str,
    lines: dict[str, int],
    problems: list[Problem],
) -> None:
    first: dict[Any, int] = {}
    for key_node, _ in node.value:
        if key_node.tag == _MERGE:
            continue
        key, line = _key(loader, key_node), key_node.start_mark.line + 1
        if key in first:
            message = f"duplicate key, on lines {first[key]} and {line}: remove one of the two"
            problems.append(Problem(at(path, str(key)), message))
        first.setdefault(key, line)
