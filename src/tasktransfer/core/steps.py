"""Steps of a method: its stages without model, data and seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tasktransfer.core.nodes import Data, Merge, Round, Start
from tasktransfer.core.specs import ModelSpec, Sampler, Selection, Training


@dataclass(frozen=True, eq=False)
class From:
    """A start from the parameters of another step, see ``nodes.Start``."""

    step: Step
    at: Round = "best"
    parts: tuple[str, ...] = ()
    into: tuple[str, ...] = ()
    merged: Merge | None = None


Begin = From | Start
"""A step of the method, or a stage of a method that is already planned."""


@dataclass(frozen=True, eq=False)
class Step:
    """One training run of a method. Undocumented fields are those of ``nodes.Stage``.

    Attributes:
        start: step that it starts from, or several starts with the parts to use. ``previous`` is
            the previous step, or the base model for the first step. None is the base model.
        data: None for the run's data.
        model: None for the run's model.
        training: None for the run's hyperparameters.
    """

    train_tasks: tuple[str, ...]
    selection: Selection
    start: Step | Begin | Sequence[Begin] | Literal["previous"] | None = "previous"
    trains: tuple[str, ...] = ()
    sampler: Sampler = "task_batches"
    test_on: tuple[str, ...] | None = None
    data: Data | None = None
    model: ModelSpec | None = None
    training: Training | None = None

    def resolve_starts(self, before: Step | None) -> tuple[Begin, ...]:
        """Return the starts of the step, with ``previous`` resolved to a step.

        Args:
            before: previous step of the method, None for the first step.
        """
        start = before if self.start == "previous" else self.start
        if start is None:
            return ()
        if isinstance(start, Step):
            return (From(start),)
        return (start,) if isinstance(start, From | Start) else tuple(start)
