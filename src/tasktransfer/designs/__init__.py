"""Designs, each of which turns a config into a plan, and records into tables and figures.

A config names its design. Its plugins (Python files or packages) may add datasets, selectors or a
design of their own:

    DATASETS = [...]       # datasets, as for ``tasktransfer.datasets.add_dataset``
    DESIGN = Design(...)
    SELECTORS = [...]      # selectors of sources, each a ``selection.selector.Selector``
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from tasktransfer import config as configs
from tasktransfer import datasets
from tasktransfer.config import CommonConfig, Document
from tasktransfer.core.identity import VERSIONS
from tasktransfer.core.plan import Plan, PlanTooLargeError, check_plan_size
from tasktransfer.core.validation import Problem, describe_unknown
from tasktransfer.designs.declared import declare_datasets
from tasktransfer.designs.design import Design
from tasktransfer.designs.empathetic.design import EMPATHETIC
from tasktransfer.designs.entries import add_entries
from tasktransfer.designs.panel.design import PANEL
from tasktransfer.designs.plugins import load_plugins
from tasktransfer.designs.probes.design import PROBES
from tasktransfer.designs.transfer.design import TRANSFER
from tasktransfer.errors import ConfigError, DataError, format_value
from tasktransfer.results.revisions import Revisions, find_revisions
from tasktransfer.results.study import Study

DESIGNS: dict[str, Design] = {
    design.name: design for design in (TRANSFER, EMPATHETIC, PANEL, PROBES)
}
"""Name → design, for the package's designs and those that plugins have added in this process."""

for _design in DESIGNS.values():
    VERSIONS.update(_design.versions)

FEW_SEEDS = 20
"""Number of seeds above which the size of a plan is extrapolated from one and two seeds."""


def add(design: Design) -> None:
    """Add a design to ``DESIGNS`` in this process, with its measures, learners and recipes.

    A design with the same name is replaced.

    Raises:
        ConfigError: as ``entries.add_entries``.
    """
    add_entries(design, [other for other in DESIGNS.values() if other.name != design.name])
    DESIGNS[design.name] = design


def load_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> CommonConfig:
    """Load and validate a config file, with the config class of its design.

    Args:
        path: a YAML file.
        overrides: nested mapping that overrides the file (``config.from_options``).

    Raises:
        ConfigError: the config is invalid. The message lists every problem, one per line, with
            line, key path, value and remedy.
    """
    return validate_config(configs.read(path, overrides))


def validate_config(document: Document) -> CommonConfig:
    """Validate a config that has been read, after loading the plugins that it may refer to.

    Raises:
        ConfigError: as ``load_config``.
    """
    load_plugins(document, Design, add)
    named = document.get("design")
    name = named if isinstance(named, str) else "transfer"  # whose config refuses other types
    if name not in DESIGNS:
        raise document.build_error(
            [Problem("design", describe_unknown("design", name, tuple(DESIGNS)))]
        )
    for dataset in DESIGNS[name].datasets:
        datasets.add_dataset(dataset)
    named = document.get("datasets")
    for design in DESIGNS.values():  # datasets of another design may be sources
        for dataset in design.datasets if isinstance(named, Mapping) else ():
            if dataset.name in named:
                datasets.add_dataset(dataset)
    declare_datasets(document)
    return configs.build_config(document, DESIGNS[name].config, DESIGNS[name].kinds)


def get_design(config: CommonConfig) -> Design:
    """Return the design of a validated config."""
    return DESIGNS[config.design]


def open_study(
    config_file: str | Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    need_inputs: bool = True,
) -> Study:
    """Read a config, and find the revisions of its data and models.

    Args:
        config_file: the study's config.
        overrides: see ``load_config``.
        need_inputs: true to raise for inputs that are neither available nor cached. Otherwise
            their revision is ``unknown``, so the study's existing results cannot be found.

    Raises:
        ConfigError: the config is invalid.
        DataError, ModelError: inputs are missing or damaged.
        RecordError: a choice that the plan depends on cannot be read.
    """
    config = load_config(config_file, overrides)
    revisions, absent = find_revisions(config, need_inputs=need_inputs)
    design = get_design(config)
    own = datasets.list_declared_datasets()
    study = Study(config, str(config_file), overrides or {}, revisions, absent, design.plan, own)
    try:
        if len(config.seeds) > FEW_SEEDS:
            first, second = (_count_nodes(design, config, revisions, seeds) for seeds in (1, 2))
            check_plan_size(first + (second - first) * (len(config.seeds) - 1))
        if not isinstance(study.plan, Plan):  # reading the plan reports its errors now
            raise ConfigError(
                f"{config_file}: The function `plan` of the design {design.name!r} returned "
                f"{format_value(study.plan)} instead of a plan. Return a core.plan.Plan."
            )
    except PlanTooLargeError as error:
        raise ConfigError(
            f"{config_file}: {error}. Lower {_format_growing_keys(config, design)}."
        ) from None
    return study


def check_shortages(study: Study) -> None:
    """Raise if the prepared data are too few for the study.

    Raises:
        DataError: there are too few data; the message has a line for each shortage.
    """
    if messages := get_design(study.config).shortages(study):
        raise DataError("\n".join(messages))


def _count_nodes(design: Design, config: CommonConfig, revisions: Revisions, seeds: int) -> int:
    """Count the nodes of the study with only its first seeds."""
    fewer = config.model_copy(update={"seeds": config.seeds[:seeds]})
    return len(design.plan(fewer, revisions).nodes)


def _format_growing_keys(config: CommonConfig, design: Design) -> str:
    """Return the config keys that multiply the plan, with their values, as text."""
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
