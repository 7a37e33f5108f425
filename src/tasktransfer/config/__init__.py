"""The study that a config file asks for, as typed data.

``load`` reads, checks and builds; whatever cannot be is refused before anything runs, all
problems of a file at once. Standard library and PyYAML only: the Snakefile imports this.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasktransfer.config import yaml_file
from tasktransfer.config.declare import Problems, check
from tasktransfer.config.json_schema import json_schema
from tasktransfer.config.keys import STUDY
from tasktransfer.config.overrides import laid_over, leaf_paths
from tasktransfer.config.rules import build
from tasktransfer.config.types import (
    TINY,
    TINY_WORLD,
    CheckpointConfig,
    Config,
    DataConfig,
    DatasetConfig,
    ModelConfig,
    MultiSourceConfig,
    NamedMultiSource,
    TinyWorldConfig,
)
from tasktransfer.designs.transfer.challenge import rules as challenge
from tasktransfer.errors import ConfigError

__all__ = [
    "TINY",
    "TINY_WORLD",
    "CheckpointConfig",
    "Config",
    "DataConfig",
    "DatasetConfig",
    "ModelConfig",
    "MultiSourceConfig",
    "NamedMultiSource",
    "TinyWorldConfig",
    "load",
    "parse",
    "schema",
]


def schema() -> dict[str, Any]:
    """The JSON schema of a config file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A tasktransfer study",
        **json_schema(STUDY),
    }


def load(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read and check the study of a file.

    Args:
        path: a YAML file.
        overrides: a nested mapping laid over the file's (``overrides.from_options``).

    Raises:
        ConfigError: every problem of the file, one a line, with line, key path, value and remedy.
    """
    problems = Problems()
    document = yaml_file.read(Path(path), problems)
    value, lines = document.value, document.lines
    if overrides:
        value = laid_over(value, overrides, problems)
        for key in leaf_paths(overrides):
            lines = {at_: line for at_, line in lines.items() if not _inside(at_, key)}
    return _build(value, str(path), lines, problems)


def parse(mapping: Any, file: str) -> Config:
    """Check a study that is a mapping already; ``file`` is named in messages.

    Raises:
        ConfigError: as ``load``.
    """
    return _build(mapping, file, {}, Problems())


def _inside(path: str, key: str) -> bool:
    return path == key or path.startswith((f"{key}.", f"{key}["))


def _build(value: Any, file: str, lines: Mapping[str, int], problems: Problems) -> Config:
    checked = check(STUDY, value, "", problems)
    config = None
    if isinstance(checked, dict):
        config = build(checked, problems)
    challenge.refuse(value, problems)
    if problems.found or config is None:
        raise ConfigError(_report(file, lines, problems))
    return config


def _report(file: str, lines: Mapping[str, int], problems: Problems) -> str:
    def line(path: str) -> str:
        return f":{lines[path]}" if path in lines else ""

    ordered = sorted(problems.found, key=lambda p: lines.get(p.path, len(lines) + 1_000_000))
    told = [f"{file}{line(p.path)}: {p.path + ': ' if p.path else ''}{p.message}" for p in ordered]
    if len(told) == 1:
        return told[0]
    count = f"{len(told)} problems or more" if problems.enough else f"{len(told)} problems"
    return f"{count} in {file}:\n" + "\n".join(f"  {text}" for text in told)
