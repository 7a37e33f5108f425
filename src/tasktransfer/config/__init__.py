"""The config of a study as typed data.

``read`` reads a file; ``build_config`` checks it and builds the config class of a design. All
problems of a file are reported at once, before anything runs. The available designs, datasets and
tasks are defined by the designs' config classes (``tasktransfer.designs``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from tasktransfer.config import yaml_file
from tasktransfer.config.models import (
    BUILT,
    TINY,
    ArchitectureConfig,
    EndpointConfig,
    ModelConfig,
)
from tasktransfer.config.renamed_keys import RENAMED
from tasktransfer.config.sections import (
    ALL,
    TINY_WORLD,
    CheckpointConfig,
    CommonConfig,
    DataConfig,
    TinyWorldConfig,
    WholeData,
)
from tasktransfer.config.training import TrainingConfig
from tasktransfer.config.yaml_file import Document
from tasktransfer.core.validation import MAX_PROBLEMS, Problem, Schema, extend_path, list_problems
from tasktransfer.errors import ConfigError, format_value

__all__ = [
    "ALL",
    "BUILT",
    "TINY",
    "TINY_WORLD",
    "ArchitectureConfig",
    "CheckpointConfig",
    "CommonConfig",
    "DataConfig",
    "Document",
    "EndpointConfig",
    "ModelConfig",
    "TinyWorldConfig",
    "TrainingConfig",
    "WholeData",
    "build_config",
    "generate_schema",
    "read",
    "validate_content",
]

Study = TypeVar("Study", bound=CommonConfig)


def read(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Document:
    """Read a YAML config file, and replace some of its values.

    Args:
        overrides: values that replace the file's, as a nested mapping
            (``from_options``).

    Raises:
        ConfigError: the file does not exist, cannot be read, or is not YAML.
    """
    document = yaml_file.read(Path(path))
    if not overrides:
        return document
    problems = [*document.problems]
    value = replace_keys(document.value, overrides, problems)
    replaced = list_leaf_paths(overrides)
    inside = tuple(f"{key}{mark}" for key in replaced for mark in ".[")
    lines = {
        key_path: line
        for key_path, line in document.lines.items()
        if key_path not in replaced and not key_path.startswith(inside)
    }
    return Document(value, document.file, lines, tuple(problems))


def build_config(document: Document, cls: type[Study], kinds: Sequence[str] | None = None) -> Study:
    """Validate a document, and return the config as an object of a config class.

    Args:
        kinds: kinds of stages that the design has, None to accept any.

    Raises:
        ConfigError: lists every problem of the file, one per line, with line number, key path,
            value and remedy.
    """
    parts: dict[str, Any] = {}
    problems: list[Problem] = []
    try:
        study = cls.model_validate(document.value, context={"parts": parts, "kinds": kinds})
    except ValidationError as error:
        problems += _collect_problems(document, error, cls.model_json_schema)
    problems += cls.find_contradictions(parts)
    forbidden = cls.list_forbidden_keys(document.value)
    problems = [problem for problem in problems if problem.path not in forbidden]
    problems += [Problem(path, message) for path, message in forbidden.items()]
    if problems or document.problems:
        raise document.build_error(problems)
    return study


def validate_content(
    document: Document, adapter: TypeAdapter[Any], context: Mapping[str, Any]
) -> Any:
    """Validate a file that is not a study's config, and return its content as typed values.

    Args:
        adapter: type of the content.
        context: context of the type's validators.

    Raises:
        ConfigError: as in ``build_config``.
    """
    try:
        value = adapter.validate_python(document.value, context=context)
    except ValidationError as error:
        raise document.build_error(
            _collect_problems(document, error, adapter.json_schema)
        ) from None
    if document.problems:
        raise document.build_error(())
    return value


def _collect_problems(
    document: Document, error: ValidationError, make_schema: Callable[[], Schema]
) -> Iterator[Problem]:
    """Yield the problems of a validation, except for keys about which YAML already reports."""
    reported = {problem.path for problem in document.problems}
    problems = list_problems(error, document.value, make_schema, renamed=RENAMED)
    for problem in islice(problems, MAX_PROBLEMS):
        if problem.path not in reported:
            yield problem


def generate_schema(cls: type[CommonConfig]) -> dict[str, Any]:
    """Return the JSON schema of a config file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **cls.model_json_schema(),
        "title": "A tasktransfer study",
    }


def from_options(options: Iterable[str]) -> dict[str, Any]:
    """Convert ``--set`` options (``a.b=value``, with YAML values) to a nested mapping.

    Raises:
        ConfigError: a key or value is missing, a key is given twice, or a value is not YAML.
    """
    result: dict[str, Any] = {}
    for option in options:
        key, equals, text = option.partition("=")
        names = key.split(".")
        if not equals or not all(names) or len(names) > yaml_file.MAX_DEPTH:
            raise ConfigError(
                f"--set {_shorten(option)}: The option does not have the form key=value. Write for "
                "example training.epochs=2."
            )
        section = result
        for depth, name in enumerate(names):
            if not isinstance(section, dict) or (name in section and depth + 1 == len(names)):
                path = _shorten(".".join(names[: depth + 1]))
                raise ConfigError(
                    f"--set {_shorten(option)}: Another option --set also sets the key {path}, a "
                    "key below it, or the section that contains it. Keep one of the two options."
                )
            if depth + 1 < len(names):
                section = section.setdefault(name, {})
        section[names[-1]] = yaml_file.parse_value(text, f"--set {_shorten(option)}")
    return result


def from_texts(value: Any) -> Any:
    """Parse the values of Snakemake's ``--config``, in which texts are YAML.

    Snakemake leaves the content of ``key={...}`` as text.
    """
    if isinstance(value, Mapping):
        return {key: from_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_texts(item) for item in value]
    if not isinstance(value, str):
        return value
    try:
        return yaml_file.parse_value(value, "--config")
    except ConfigError:
        return value


def replace_keys(
    base: Any, over: Mapping[str, Any], problems: list[Problem], path: str = ""
) -> Any:
    """Return a mapping in which some keys are replaced. Lists are only replaced as a whole.

    Args:
        base: values of the file.
        over: values that replace them, as a nested mapping.
        problems: list to which the keys that cannot be replaced are added.
        path: key path of ``base``.
    """
    if isinstance(base, list):
        key = format_value(next(iter(over), ""))
        message = f"The value is a list, which has no key {key}. Give the whole list."
        problems.append(Problem(path, message))
        return base
    result = dict(base) if isinstance(base, dict) else {}
    for key, value in over.items():
        below = (result.get(key), value, problems, extend_path(path, key))
        result[key] = replace_keys(*below) if isinstance(value, Mapping) else value
    return result


def list_leaf_paths(value: Mapping[str, Any], path: str = "") -> list[str]:
    """Return the key paths of all values in a nested mapping, except mappings."""
    leaves = []
    for key, item in value.items():
        below = extend_path(path, key)
        leaves += list_leaf_paths(item, below) if isinstance(item, Mapping) else [below]
    return leaves


def _shorten(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}..."
