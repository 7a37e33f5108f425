"""The steps of a method: its stages before model, data and seed are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tasktransfer.core.nodes import Data, Merge, Round, Start
from tasktransfer.core.specs import ModelSpec, Sampler, Selection, Training


@dataclass(frozen=True, eq=False)
class From:
    """A step's parameters as a start, see ``nodes.Start``."""

    step: Step
    at: Round = "best"
    parts: tuple[str, ...] = ()
    into: tuple[str, ...] = ()
    merged: Merge | None = None


Begin = From | Start
"""A step of the method, or a stage of a method that was planned before."""


@dataclass(frozen=True, eq=False)
class Step:
    """One training of a method.

    ``start``: the step that it starts from, or several with what is taken of each; ``previous``:
    the step before, and of the first one the base model; None: the base model. ``data``, ``model``
    and ``training``: None is the run's. The other fields as in ``nodes.Stage``.
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

    def starts(self, before: Step | None) -> tuple[Begin, ...]:
        """What it starts from; ``before`` is the step before it in its method."""
        start = before if self.start == "previous" else self.start
        if start is None:
            return ()
        if isinstance(start, Step):
            return (From(start),)
        return (start,) if isinstance(start, From | Start) else tuple(start)
