"""The designs: each turns a config into a plan, and records into its tables and figures.

A study names its design, and Python files or packages that add datasets or a design of their own:

    DATASETS = [...]       # datasets, each as ``tasktransfer.datasets.add`` takes it
    DESIGN = Design(...)
    SELECTORS = [...]      # of sources to train on, each a ``core.selectors.Selector``
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from tasktransfer import config as configs
from tasktransfer import datasets
from tasktransfer.config import CommonConfig, Document
from tasktransfer.core.plan import Plan, PlanTooLargeError, refuse_large
from tasktransfer.core.validation import Problem, show, unknown
from tasktransfer.core.versions import VERSIONS
from tasktransfer.designs.declared import declare_datasets
from tasktransfer.designs.design import Design
from tasktransfer.designs.empathetic.design import EMPATHETIC
from tasktransfer.designs.entries import add_entries
from tasktransfer.designs.panel.design import PANEL
from tasktransfer.designs.plugins import load_plugins
from tasktransfer.designs.probes.design import PROBES
from tasktransfer.designs.transfer.design import TRANSFER
from tasktransfer.errors import ConfigError, DataError
from tasktransfer.results.revisions import Revisions, find_revisions
from tasktransfer.results.study import Study

DESIGNS: dict[str, Design] = {
    design.name: design for design in (TRANSFER, EMPATHETIC, PANEL, PROBES)
}
"""Name → design: those of the package, and those that plugins have added in this process."""

for _design in DESIGNS.values():
    VERSIONS.update(_design.versions)

FEW_SEEDS = 20
"""Seeds are alike: of more than these, one and two tell how large a plan becomes, and soon."""


def add(design: Design) -> None:
    """Make a design from outside the package one of ``DESIGNS`` in this process, with the measures,
    learners and recipes that it brings. One of the same name is replaced.

    Raises:
        ConfigError: as ``entries.add_entries``.
    """
    add_entries(design, [other for other in DESIGNS.values() if other.name != design.name])
    DESIGNS[design.name] = design


def load_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> CommonConfig:
    """The study of a file, checked, as the config class of its design.

    Args:
        path: a YAML file.
        overrides: a nested mapping laid over the file's (``config.overrides.from_options``).

    Raises:
        ConfigError: every problem of the file, one a line, with line, key path, value and remedy.
    """
    return checked_config(configs.read(path, overrides))


def checked_config(document: Document) -> CommonConfig:
    """A study that has been read. Plugins come first: what they add may be named in it.

    Raises:
        ConfigError: as ``load_config``.
    """
    load_plugins(document, Design, add)
    named = document.get("design")
    name = named if isinstance(named, str) else "transfer"  # and its config refuses any other type
    if name not in DESIGNS:
        raise document.error([Problem("design", unknown("design", name, tuple(DESIGNS)))])
    for dataset in DESIGNS[name].datasets:
        datasets.add(dataset)
    named = document.get("datasets")
    for design in DESIGNS.values():  # what another design reads may be a source
        for dataset in design.datasets if isinstance(named, Mapping) else ():
            if dataset.name in named:
                datasets.add(dataset)
    declare_datasets(document)
    return configs.validated(document, DESIGNS[name].config, DESIGNS[name].kinds)


def design_of(config: CommonConfig) -> Design:
    """The design that a checked config names."""
    return DESIGNS[config.design]


def open_study(
    config_file: str | Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    need_inputs: bool = True,
) -> Study:
    """Read a config and ask the disk for the revisions of data and models.

    Args:
        config_file: the study.
        overrides: see ``load_config``.
        need_inputs: refuse inputs that are neither there nor remembered. Otherwise their revision
            is ``unknown``, and what exists of the study cannot be told.

    Raises:
        ConfigError: the config cannot be.
        DataError, ModelError: inputs are missing or damaged.
        RecordError: a choice that the plan depends on cannot be read.
    """
    config = load_config(config_file, overrides)
    revisions, absent = find_revisions(config, need_inputs=need_inputs)
    design = design_of(config)
    own = datasets.declared_now()
    study = Study(config, str(config_file), overrides or {}, revisions, absent, design.plan, own)
    try:
        if len(config.seeds) > FEW_SEEDS:
            first, second = (_count(design, config, revisions, seeds) for seeds in (1, 2))
            refuse_large(first + (second - first) * (len(config.seeds) - 1))
        if not isinstance(study.plan, Plan):  # what is wrong with it is told now
            raise ConfigError(
                f"{config_file}: design {design.name!r} (plugins): its plan function returned "
                f"{show(study.plan)}: make it return a core.plan.Plan"
            )
    except PlanTooLargeError as error:
        raise ConfigError(f"{config_file}: {error}: lower {_sizes(config, design)}") from None
    return study


def refuse_shortages(study: Study) -> None:
    """Refuse prepared data that are too few for what the study asks.

    Raises:
        DataError: a line for everything that is too few.
    """
    if messages := design_of(study.config).shortages(study):
        raise DataError("\n".join(messages))


def _count(design: Design, config: CommonConfig, revisions: Revisions, seeds: int) -> int:
    """Nodes of the study with its first seeds alone."""
    fewer = config.model_copy(update={"seeds": config.seeds[:seeds]})
    return len(design.plan(fewer, revisions).nodes)


def _sizes(config: CommonConfig, design: Design) -> str:
    """The keys that a plan grows with, and what they say."""
    values = config.model_dump()
    said = {
        key: reduce(lambda part, name: part and part[name], key.split("."), values)
        for key in design.grows_with
    }
    return ", ".join(
        f"{key} ({value if isinstance(value, int | str) else len(value)})"
        for key, value in said.items()
        if value
    )
