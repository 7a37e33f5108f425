"""Config values on the command line, which override those of the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tasktransfer.config import yaml_file
from tasktransfer.core.validation import Problem, extend_path, show
from tasktransfer.errors import ConfigError


def from_options(options: Iterable[str]) -> dict[str, Any]:
    """Convert ``a.b=value`` texts of ``--set``, whose values are YAML, to a nested mapping.

    Raises:
        ConfigError: a key or value is missing, a key is given twice, or a value is not YAML.
    """
    result: dict[str, Any] = {}
    for option in options:
        key, equals, text = option.partition("=")
        names = key.split(".")
        if not equals or not all(names) or len(names) > yaml_file.MAX_DEPTH:
            raise ConfigError(
                f"--set {_cut(option)}: The option is not of the form key=value. Write for "
                "example training.epochs=2."
            )
        section = result
        for depth, name in enumerate(names):
            if not isinstance(section, dict) or (name in section and depth + 1 == len(names)):
                path = _cut(".".join(names[: depth + 1]))
                raise ConfigError(
                    f"--set {_cut(option)}: Another --set sets {path} or a section that "
                    "contains it. Keep one of the two."
                )
            if depth + 1 < len(names):
                section = section.setdefault(name, {})
        section[names[-1]] = yaml_file.parse_value(text, f"--set {_cut(option)}")
    return result


def from_texts(value: Any) -> Any:
    """Convert the values of Snakemake's ``--config``: texts that are YAML become their values.

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
    """Return a value with some of its keys replaced. A list can only be replaced as a whole."""
    if isinstance(base, list):
        key = show(next(iter(over), ""))
        message = f"is a list, and {key} is not a key of it: give the whole list"
        problems.append(Problem(path, message))
        return base
    result = dict(base) if isinstance(base, dict) else {}
    for key, value in over.items():
        below = (result.get(key), value, problems, extend_path(path, key))
        result[key] = replace_keys(*below) if isinstance(value, Mapping) else value
    return result


def list_leaf_paths(value: Mapping[str, Any], path: str = "") -> list[str]:
    """Return the key paths of all values in a nested mapping that are not mappings."""
    leaves = []
    for key, item in value.items():
        below = extend_path(path, key)
        leaves += list_leaf_paths(item, below) if isinstance(item, Mapping) else [below]
    return leaves


def _cut(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}..."
