"""The study that a config file asks for, as typed data.

``read`` reads a file, ``validated`` checks it and builds the config class of a design; whatever
cannot be is refused before anything runs, all problems of a file at once. Which designs, datasets
and tasks there are is not known here: a design's config class says it (``tasktransfer.designs``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from tasktransfer.config import yaml_file
from tasktransfer.config.overrides import laid_over, leaf_paths
from tasktransfer.config.sections import (
    ALL,
    TINY,
    TINY_WORLD,
    CheckpointConfig,
    CommonConfig,
    DataConfig,
    ModelConfig,
    TinyWorldConfig,
    TrainingConfig,
)
from tasktransfer.errors import ConfigError
from tasktransfer.validation import MAX_PROBLEMS, Problem, Schema, problems_of

__all__ = [
    "ALL",
    "TINY",
    "TINY_WORLD",
    "CheckpointConfig",
    "CommonConfig",
    "DataConfig",
    "Document",
    "ModelConfig",
    "TinyWorldConfig",
    "TrainingConfig",
    "checked",
    "read",
    "schema",
    "validated",
]

Study = TypeVar("Study", bound=CommonConfig)


@dataclass(frozen=True, slots=True)
class Document:
    """A config before it is checked: its value, the name that messages give it, the line of each
    key path, and what YAML itself is wrong with."""

    value: Any
    file: str
    lines: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def get(self, key: str) -> Any:
        """The value at a key of the top level; None if there is none."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def error(self, problems: Iterable[Problem]) -> ConfigError:
        """All problems in one message, each with its line, in the order of the lines."""

        def line(path: str) -> str:
            return f":{self.lines[path]}" if path in self.lines else ""

        distinct = list(dict.fromkeys([*self.problems, *problems]))
        last = len(self.lines) + 1_000_000
        ordered = sorted(distinct, key=lambda problem: self.lines.get(problem.path, last))
        texts = [f"{self.file}{line(problem.path)}: {problem}" for problem in ordered]
        if len(texts) == 1:
            return ConfigError(texts[0])
        count = f"{len(texts)} problems{' or more' if len(texts) >= MAX_PROBLEMS else ''}"
        return ConfigError(f"{count} in {self.file}:\n" + "\n".join(f"  {text}" for text in texts))


def read(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Document:
    """Read a YAML file; ``overrides`` is a nested mapping laid over the file's
    (``overrides.from_options``).

    Raises:
        ConfigError: no such file, unreadable, or not YAML.
    """
    problems: list[Problem] = []
    document = yaml_file.read(Path(path), problems)
    value, lines = document.value, document.lines
    if overrides:
        value = laid_over(value, overrides, problems)
        for key in leaf_paths(overrides):
            lines = {path: line for path, line in lines.items() if not _inside(path, key)}
    return Document(value, str(path), lines, tuple(problems))


def _inside(path: str, key: str) -> bool:
    return path == key or path.startswith((f"{key}.", f"{key}["))


def validated(document: Document, cls: type[Study]) -> Study:
    """The config of a class.

    Raises:
        ConfigError: every problem of the file, one a line, with line, key path, value and remedy.
    """
    parts: dict[str, Any] = {}
    problems: list[Problem] = []
    try:
        study = cls.model_validate(document.value, context={"parts": parts})
    except ValidationError as error:
        problems += _problems(document, error, cls.model_json_schema)
    problems += cls.contradictions(parts)
    forbidden = cls.forbidden(document.value)
    problems = [problem for problem in problems if problem.path not in forbidden]
    problems += [Problem(path, message) for path, message in forbidden.items()]
    if problems or document.problems:
        raise document.error(problems)
    return study


def checked(document: Document, adapter: TypeAdapter[Any], context: Mapping[str, Any]) -> Any:
    """A file of something else than a study, checked as ``validated`` does."""
    try:
        value = adapter.validate_python(document.value, context=context)
    except ValidationError as error:
        raise document.error(_problems(document, error, adapter.json_schema)) from None
    if document.problems:
        raise document.error(())
    return value


def _problems(
    document: Document, error: ValidationError, make_schema: Callable[[], Schema]
) -> Iterator[Problem]:
    """What is wrong, without what YAML has a problem with already."""
    told = {problem.path for problem in document.problems}
    for problem in islice(problems_of(error, document.value, make_schema), MAX_PROBLEMS):
        if problem.path not in told:
            yield problem


def schema(cls: type[CommonConfig]) -> dict[str, Any]:
    """The JSON schema of a config file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **cls.model_json_schema(),
        "title": "A tasktransfer study",
    }
