"""Config values on the command line, which override those of the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tasktransfer.config import yaml_file
from tasktransfer.core.validation import Problem, extend_path
from tasktransfer.errors import ConfigError, format_value


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
