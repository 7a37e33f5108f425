"""Read YAML strictly: keys that stand twice are refused, and every value keeps its line number.

PyYAML by itself silently takes the last of two equal keys, so that half of a study could go
missing unnoticed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tasktransfer.config.declare import Problems, at
from tasktransfer.errors import ConfigError

MAX_DEPTH = 50
"""Deeper than any config; reached by an alias that holds itself."""


@dataclass(frozen=True, slots=True)
class Document:
    """The value of a YAML file, and the line (from 1) on which each key path stands."""

    value: Any
    lines: dict[str, int]


def read(path: Path, problems: Problems) -> Document:
    """Read a YAML file; keys that stand twice go into ``problems``.

    Raises:
        ConfigError: no such file, unreadable, or not YAML (with the line).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file; give the path of a study's YAML file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); it must be UTF-8 text") from error
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        document = Document(None, {})
        value = _plain(loader, node, "", document.lines, problems, 0) if node else None
        return Document(value, document.lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise ConfigError(f"{where}: not valid YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from error
    except ValueError as error:
        # PyYAML lets impossible dates (2022-99-99) escape as a bare ValueError.
        raise ConfigError(f"{path}: a value cannot be read ({error}); put it in quotes") from error
    finally:
        loader.dispose()


def _plain(
    loader: yaml.SafeLoader,
    node: yaml.Node,
    path: str,
    lines: dict[str, int],
    problems: Problems,
    depth: int,
) -> Any:
    if depth > MAX_DEPTH:
        raise yaml.MarkedYAMLError(problem="an alias holds itself", problem_mark=node.start_mark)
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        _refuse_repeated_keys(loader, node, path, lines, problems)
        loader.flatten_mapping(node)
        result: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = _key(loader, key_node)
            here = at(path, str(key))
            lines[here] = key_node.start_mark.line + 1
            result[key] = _plain(loader, value_node, here, lines, problems, depth + 1)
        return result
    if isinstance(node, yaml.SequenceNode):
        return [
            _plain(loader, item, at(path, index), lines, problems, depth + 1)
            for index, item in enumerate(node.value)
        ]
    return loader.construct_object(node, deep=True)


def _key(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    if not isinstance(node, yaml.ScalarNode):
        raise yaml.MarkedYAMLError(problem="a key must be a name", problem_mark=node.start_mark)
    return loader.construct_object(node)


def _refuse_repeated_keys(
    loader: yaml.SafeLoader,
    node: yaml.MappingNode,
    path: str,
    lines: dict[str, int],
    problems: Problems,
) -> None:
    first: dict[Any, int] = {}
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue
        key, line = _key(loader, key_node), key_node.start_mark.line + 1
        if key in first:
            problems.add(
                at(path, str(key)),
                f"stands twice, on lines {first[key]} and {line}: remove one of the two",
            )
        first.setdefault(key, line)
