"""Read YAML strictly and within limits.

PyYAML silently keeps the last of two equal keys, so that half of a study could be lost unnoticed.
It reads 010 as 8 and 1:30 as 90. A few lines of nested aliases can expand to gigabytes, and nested
lists can exhaust Python's stack. This module therefore counts the parser's events, one by one,
before it builds any value from them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tasktransfer.core.validation import MAX_PROBLEMS, Problem, extend_path
from tasktransfer.errors import ConfigError, format_location, format_value
from tasktransfer.files.untrusted import open_regular

MAX_BYTES = 2**20
MAX_VALUES = 50_000
"""Maximum number of values of a text with its aliases expanded.

A study of every subset of sources has 30,000.
"""
MAX_DEPTH = 50
MAX_KEY = 200
MAX_DIGITS = 30

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser in C, which is ten times as fast but not part of every PyYAML installation."""

UNREADABLE = object()
"""Placeholder for a number with a problem. No key accepts its type."""

_TWO_READINGS = re.compile(r"[-+]?0[0-9_xb].*|.*[_:].*")
"""Numbers of YAML 1.1 that are other numbers, or text, in YAML 1.2.

They are octal, hexadecimal or binary numbers, numbers with underscores, and base-60 times of day.
"""
_INTEGER, _FLOAT, _MERGE, _TEXT = (
    f"tag:yaml.org,2002:{name}" for name in ("int", "float", "merge", "str")
)


@dataclass(frozen=True, slots=True)
class Document:
    """A config before it is checked.

    Attributes:
        value: content of the file.
        file: name of the file in messages.
        lines: key path → line number.
        problems: problems that the YAML reader has found.
    """

    value: Any
    file: str
    lines: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def get(self, key: str) -> Any:
        """Return the value of a top-level key, or None if the key is missing."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def build_error(self, problems: Iterable[Problem]) -> ConfigError:
        """Return one error with all problems, sorted by line."""
        distinct = dict.fromkeys([*self.problems, *problems])
        ordered = sorted(distinct, key=lambda problem: self.lines.get(problem.path, math.inf))
        texts = [
            f"{format_location(self.file, self.lines.get(problem.path))}: {problem}"
            for problem in ordered
        ]
        if len(texts) == 1:
            return ConfigError(texts[0])
        count = f"{len(texts)} {'or more ' if len(texts) >= MAX_PROBLEMS else ''}problems"
        return ConfigError(f"{self.file} has {count}:\n" + "\n".join(f"  {text}" for text in texts))


class _UnreadableError(Exception):
    """A text that cannot be read, with the line number (from 1; None for the whole text)."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


def read(path: Path) -> Document:
    """Read a YAML file, and collect duplicate keys and ambiguous numbers as ``problems``.

    Raises:
        ConfigError: the file does not exist, cannot be read, is not YAML (with the line), or
            exceeds the limits.
    """
    try:
        return _parse_document(_read_text(path), str(path))
    except _UnreadableError as error:
        raise ConfigError(f"{format_location(path, error.line)}: {error}") from error


def parse_value(text: str, source: str) -> Any:
    """Return the value of a YAML text from ``source``, for example an option.

    Raises:
        ConfigError: as in ``read``, and if the document has ``problems``.
    """
    try:
        document = _parse_document(text, source)
    except _UnreadableError as error:
        raise ConfigError(f"{source}: {error}") from error
    for problem in document.problems:
        raise ConfigError(f"{source}: {problem}")
    return document.value


def _read_text(path: Path) -> str:
    try:
        with open_regular(path) as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise _UnreadableError(
            "The file does not exist. Pass the path of a study's YAML file."
        ) from error
    except IsADirectoryError as error:
        raise _UnreadableError(
            "The path is a folder. Pass the path of the YAML file in this folder, for example "
            f"{path / 'config.yaml'}."
        ) from error
    except (OSError, ValueError) as error:
        raise _UnreadableError(f"The file cannot be read ({error}).") from error
    if len(content) > MAX_BYTES:
        raise _UnreadableError(
            f"The file is larger than {MAX_BYTES:,} bytes. Check that the file is the config of a "
            "study."
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _UnreadableError(
            f"The file cannot be read ({error}). Save the file as UTF-8 text."
        ) from error


def _parse_document(text: str, source: str) -> Document:
    loader = None
    try:
        _check_extent(yaml.parse(text, Loader=Loader))
        loader = Loader(text)
        node, builder = loader.get_single_node(), _Builder(loader)
        value = builder.build_value(node) if node else None
        return Document(value, source, builder.lines, tuple(builder.problems))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = f"This is not valid YAML ({error.problem or error.context}). Correct the line."
        raise _UnreadableError(reason, mark.line + 1 if mark else None) from error
    except yaml.YAMLError as error:
        raise _UnreadableError(f"This is not valid YAML ({error}). Correct it.") from error
    except ValueError as error:
        # PyYAML raises a bare ValueError for impossible dates (2022-99-99).
        raise _UnreadableError(
            f"A value cannot be read ({error}). Put the value in quotes."
        ) from error
    finally:
        if loader is not None:
            loader.dispose()


# --- limits -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Extent:
    """The size of a value with expanded aliases.

    Attributes:
        anchor: anchor of the value, None if it has none.
        values: number of values in it, including itself.
        levels: number of nested levels below it.
    """

    anchor: str | None
    values: int = 1
    levels: int = 0

    def add_part(self, part: _Extent) -> None:
        self.values += part.values
        self.levels = max(self.levels, part.levels + 1)


def _check_extent(events: Iterator[Any]) -> None:
    """Raise an error if a YAML text has a tag, or too many nested levels or values.

    Aliases count as the values that they stand for.

    Events are counted one by one, so that the error comes before memory or stack are exhausted.
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
                raise _UnreadableError(
                    f"The alias *{event.anchor} contains itself. Remove the alias.", line
                )
            part = anchored.get(event.anchor, _Extent(None))
            total += part.values
        elif isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            if event.tag is not None:
                remedy = "Write the value without a tag, and text in quotes"
                tag = format_value(event.tag)
                raise _UnreadableError(f"The YAML tag {tag} is not allowed. {remedy}.", line)
            part = _Extent(event.anchor)
            total += 1
        else:
            continue
        if isinstance(event, yaml.CollectionStartEvent):
            around.append(part)
        else:
            around[-1].add_part(part)
            anchored |= {part.anchor: part} if part.anchor else {}
        if len(around) + part.levels > MAX_DEPTH:
            raise _UnreadableError(f"The file has more than {MAX_DEPTH} nested levels.", line)
        if total > MAX_VALUES:
            raise _UnreadableError(
                f"The file contains more than {MAX_VALUES:,} values after its aliases are "
                "expanded.",
                line,
            )


# --- values -------------------------------------------------------------------------------------


class _Builder:
    """A builder of values from YAML nodes, which collects line numbers (from 1) and problems."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self.lines: dict[str, int] = {}
        self.problems: list[Problem] = []

    def build_value(self, node: yaml.Node, path: str = "") -> Any:
        """Return the value of a node at a key path."""
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._build_mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [
                self.build_value(item, extend_path(path, index))
                for index, item in enumerate(node.value)
            ]
        return self._build_scalar(node, path)

    def _build_mapping(self, node: yaml.MappingNode, path: str) -> dict[Any, Any]:
        first: dict[str, int] = {}
        own = [key_node for key_node, _ in node.value if key_node.tag != _MERGE]
        for key, line in (
            (self._read_key(key_node), key_node.start_mark.line + 1) for key_node in own
        ):
            if key in first:
                message = f"The key is on the lines {first[key]} and {line}. Remove one of the two."
                self._add_problem(extend_path(path, key), message)
            first.setdefault(key, line)
        self._loader.flatten_mapping(node)
        result = {}
        for key_node, value_node in node.value:
            key = self._read_key(key_node)
            below = extend_path(path, key)
            self.lines[below] = key_node.start_mark.line + 1
            if key_node.tag != _TEXT:
                self._add_problem(below, "The key is not text. Remove it, or put it in quotes.")
            result[key] = self.build_value(value_node, below)
        return result

    def _read_key(self, node: yaml.Node) -> str:
        """Return a key as text.

        Raises:
            _UnreadableError: the key is a list or mapping, or is too long.
        """
        line = node.start_mark.line + 1
        if not isinstance(node, yaml.ScalarNode):
            raise _UnreadableError(
                "The key is a list or a mapping, but it must be text. Write the key as text.",
                line,
            )
        if len(node.value) > MAX_KEY:
            text = (
                f"The key {format_value(node.value)} is longer than any key of a study. Remove it."
            )
            raise _UnreadableError(text, line)
        return str(node.value)

    def _build_scalar(self, node: yaml.Node, path: str) -> Any:
        """Return a scalar's value, and report a problem if YAML versions read it differently."""
        text, is_number = node.value, node.tag in (_INTEGER, _FLOAT)
        if is_number and len(text) > MAX_DIGITS:
            message = (
                f"The value {format_value(text)} is a number of {len(text):,} digits. Write fewer."
            )
            return self._add_problem(path, message)
        value = self._loader.construct_object(node)
        if is_number and _TWO_READINGS.fullmatch(text):
            return self._add_problem(
                path,
                f"The value is {text}, which YAML reads as {format_value(value)}. Write a number "
                "in decimal digits only, without leading zeros, '_' or ':', and text in quotes.",
            )
        return value

    def _add_problem(self, path: str, message: str) -> object:
        self.problems.append(Problem(path, message))
        return UNREADABLE
