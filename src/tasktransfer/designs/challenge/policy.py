"""Policies that choose the transfer run of each task, and the file of the ``named`` policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, TypeAdapter

from tasktransfer import config
from tasktransfer.config.fields import Section, Seed
from tasktransfer.core.validation import Problem, describe_unknown
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.names import TaskName, TaskNames
from tasktransfer.designs.transfer.algorithms import TRANSFER_ALGORITHMS
from tasktransfer.designs.transfer.multi_source_section import TransferName
from tasktransfer.errors import ConfigError, suggest_name
from tasktransfer.selection.methods import SELECTORS

BEST_DEV, FIXED, BY_SELECTOR, NAMED = "best-dev", "fixed:", "selector:", "named"


class NamedRun(Section):
    """A run that the user specifies for a task, in the file of the ``named`` policy."""

    algorithm: TransferName = Field(description="name of the transfer algorithm")
    sources: TaskNames = Field(description="source tasks")
    seed: Seed | None = Field(
        default=None, description="seed of the run; if omitted, the seed with the best dev score"
    )
    baseline_seed: Seed | None = Field(
        default=None,
        description="seed of the baseline; if omitted, the seed with the best dev score",
    )


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy that chooses runs. ``name`` is the user's text.

    ``algorithm`` is set for ``fixed:ALGORITHM``, ``selector`` for ``selector:NAME``, and ``named``
    (runs by task) for ``named``. Without them, algorithm and sources are chosen by dev score.
    """

    name: str
    algorithm: str | None = None
    selector: str | None = None
    named: Mapping[str, NamedRun] = field(default_factory=dict)


def parse_policy(text: str, dataset: str, runs: Path | None) -> Policy:
    """Parse the option ``--policy``. ``runs`` is the file that the policy ``named`` reads.

    Raises:
        ConfigError: the policy, its algorithm or its selector is unknown, the file is missing or
            belongs to another policy, or it is invalid (all problems in one message).
    """
    if text == NAMED and runs is None:
        raise ConfigError(
            f"--policy {text}: This policy needs a file with the runs. Add --runs FILE."
        )
    if text != NAMED and runs is not None:
        raise ConfigError(
            f"--policy {text}: The option --runs applies only to --policy {NAMED}. Remove --runs."
        )
    if runs is not None:
        return Policy(text, named=_read_runs(runs, dataset))
    if text == BEST_DEV:
        return Policy(text)
    algorithm = text.removeprefix(FIXED)
    if text.startswith(FIXED) and algorithm in TRANSFER_ALGORITHMS:
        return Policy(text, algorithm=algorithm)
    selector = text.removeprefix(BY_SELECTOR)
    if text.startswith(BY_SELECTOR) and selector in SELECTORS:
        return Policy(text, selector=selector)
    fixed = (FIXED + name for name in TRANSFER_ALGORITHMS)
    policies = (BEST_DEV, *fixed, *(BY_SELECTOR + name for name in SELECTORS), NAMED)
    raise ConfigError(
        f"--policy {text}: There is no policy with this name.{suggest_name(text, policies)} "
        f"Choose one of {', '.join(policies)}."
    )


def _read_runs(path: Path, dataset: str) -> dict[str, NamedRun]:
    """Read the runs to submit for each task from a YAML or JSON file."""
    document = config.read(path)
    tasks = tuple(DATASETS[dataset].tasks)
    named = document.value if isinstance(document.value, dict) else {}
    if others := [task for task in named if task not in tasks]:
        raise document.build_error(
            Problem(str(t), describe_unknown("task", str(t), tasks)) for t in others
        )
    adapter = TypeAdapter(dict[TaskName, NamedRun])
    runs: dict[str, NamedRun] = config.validate_content(document, adapter, {"dataset": dataset})
    missing = [task for task in tasks if task not in runs]
    if missing:
        raise document.build_error(
            Problem(task, "The task is missing. Add its run.") for task in missing
        )
    return runs
