"""A study as planned: its config, the revisions of its inputs, its plan and its choices."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from tasktransfer.config import CommonConfig
from tasktransfer.core.plan import Choice, Plan, get_relative_choice_path
from tasktransfer.datasets import replace_declared_datasets
from tasktransfer.datasets.dataset import Dataset
from tasktransfer.errors import ConfigError, RecordError
from tasktransfer.files import json_text, replace_file
from tasktransfer.results.revisions import Revisions


@dataclass(frozen=True)
class PlannedStudy:
    """A config with its revisions and plan."""

    config: CommonConfig
    config_file: str
    overrides: Mapping[str, Any]
    revisions: Revisions
    absent: tuple[str, ...]
    """Messages, with remedies, about data and models that are not on this disk."""
    planner: Callable[[Any, Revisions], Plan]
    """Planner of the study's design."""
    declared: tuple[Dataset, ...] = ()
    """Datasets declared in the config. Another study may use the same names for other files."""

    @property
    def plan(self) -> Plan:
        """Plan of all runs known so far, which pending choices (``Plan.choices``) may extend."""
        self.use_datasets()
        return self._plan

    @cached_property
    def _plan(self) -> Plan:
        return self.planner(self.config, self.revisions)

    def use_datasets(self) -> None:
        """Register this study's datasets again, because another study may have replaced them."""
        replace_declared_datasets(self.declared)

    @property
    def has_unknown_inputs(self) -> bool:
        """True if a revision is unknown, so that result paths are unknown too."""
        return self.revisions.has_unknown

    def get_choice(self, name: str) -> Choice:
        """Return the plan's choice with a name.

        Raises:
            ConfigError: the plan has no choice with this name yet.
        """
        for choice in self.plan.choices:
            if choice.name == name:
                return choice
        known = ", ".join(choice.name for choice in self.plan.choices) or "none"
        raise ConfigError(
            f"{self.config_file}: The study has no selection with the name {name!r}. Use one of "
            f"{known}; further selections may follow when these selections are made."
        )

    def get_choice_path(self, choice: Choice) -> str:
        """Return the path of the file that stores a choice."""
        return f"{self.config.results}/{get_relative_choice_path(choice.name)}"

    @property
    def pending_choices(self) -> tuple[Choice, ...]:
        """Choices that are not made yet, on which further runs depend."""
        return tuple(choice for choice in self.plan.choices if not choice.made)

    def as_largest(self) -> Self:
        """Return the study with all runs that pending choices may add, if their number is known."""
        return replace(self, config=self.config.as_largest()) if self.pending_choices else self

    @cached_property
    def further_trainings(self) -> int | None:
        """Maximum number of trainings that pending choices add, None if it is unknown."""
        largest = self.as_largest()
        if largest.pending_choices:
            return None
        return len(largest.plan.stages) - len(self.plan.stages)

    def with_choices(self) -> Self:
        """Return the study with the runs that follow from all choices made so far."""
        files = (self.get_choice_path(choice) for choice in self.pending_choices)
        return replace(self) if any(Path(file).exists() for file in files) else self


def read_choice(results: str | Path, name: str) -> Any | None:
    """Read a stored choice, or return None if it is pending.

    Raises:
        RecordError: the file is damaged.
    """
    path = Path(results, get_relative_choice_path(name))
    if not path.exists():
        return None
    try:
        return json_text.read(path)
    except (OSError, ValueError) as error:
        raise RecordError(
            f"{path}: The file is damaged ({error!r}). Delete the file, and run the study again "
            "to repeat the selection."
        ) from error


def write_choice(results: str | Path, name: str, chosen: Any) -> None:
    """Write a choice atomically."""
    path = Path(results, get_relative_choice_path(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as part:
        part.write_text(json.dumps(chosen, indent=2) + "\n", encoding="utf-8")
