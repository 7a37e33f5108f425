"""The designs: each turns a config into a plan, and records into its tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasktransfer.config import Config, load
from tasktransfer.designs.design import Design
from tasktransfer.designs.transfer.design import TRANSFER
from tasktransfer.results.revisions import find_revisions
from tasktransfer.results.study import Study

DESIGNS: dict[str, Design] = {TRANSFER.name: TRANSFER}
"""The designs by the name that the config key ``design`` gives."""


def design_of(config: Config) -> Design:
    """The design that a config names."""
    return DESIGNS["transfer"]


def open_study(
    config_file: str | Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    need_inputs: bool = True,
) -> Study:
    """Read a config and ask the disk for the revisions of data and models.

    Args:
        config_file: the study.
        overrides: see ``config.load``.
        need_inputs: refuse inputs that are neither there nor remembered. Otherwise their revision
            is ``unknown``, and what exists of the study cannot be told.

    Raises:
        ConfigError: the config cannot be.
        DataError, ModelError: inputs are missing or damaged.
        RecordError: a choice that the plan depends on cannot be read.
    """
    config = load(config_file, overrides)
    revisions, absent = find_revisions(config, need_inputs=need_inputs)
    planner = design_of(config).plan
    study = Study(config, str(config_file), overrides or {}, revisions, absent, planner)
    _ = study.plan  # what is wrong with it is told now
    return study
