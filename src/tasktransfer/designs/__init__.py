"""The designs: each turns a config into a plan, and records into its tables and figures.

A study names its design, and Python files or packages that add datasets or a design of their own:

    DATASETS = [...]       # datasets, each as ``tasktransfer.datasets.add`` takes it
    DESIGN = Design(...)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer import config
from tasktransfer.config import CommonConfig, Document
from tasktransfer.designs.plugins import load_plugins
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.validation import Problem, unknown


@dataclass(frozen=True, slots=True)
class Design:
    """A design by its name; ``config`` is the class that its config files are checked by."""

    name: str
    config: type[CommonConfig]


DESIGNS: dict[str, Design] = {"transfer": Design("transfer", TransferConfig)}
"""Name → design: those of the package, and those that plugins have added in this process."""


def load_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> CommonConfig:
    """The study of a file, checked, as the config class of its design.

    Args:
        path: a YAML file.
        overrides: a nested mapping laid over the file's (``config.overrides.from_options``).

    Raises:
        ConfigError: every problem of the file, one a line, with line, key path, value and remedy.
    """
    return checked_config(config.read(path, overrides))


def checked_config(document: Document) -> CommonConfig:
    """A study that has been read. Plugins come first: what they add may be named in it.

    Raises:
        ConfigError: as ``load_config``.
    """
    for design in load_plugins(document, Design):
        DESIGNS[design.name] = design
    named = document.get("design")
    name = named if isinstance(named, str) else "transfer"  # and its config refuses any other type
    if name not in DESIGNS:
        raise document.error([Problem("design", unknown("design", name, tuple(DESIGNS)))])
    return config.validated(document, DESIGNS[name].config)
