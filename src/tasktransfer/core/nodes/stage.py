"""Stages: training runs, and the parameters that stages and outcomes start from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from tasktransfer.core.identity import (
    RECIPE_VERSION,
    SHORT,
    compute_digest,
    drop_empty_values,
)
from tasktransfer.core.nodes.data import Data
from tasktransfer.core.specs import (
    AdapterStart,
    ModelSpec,
    Sampler,
    Selection,
    Training,
)
from tasktransfer.errors import ConfigError

if TYPE_CHECKING:
    from tasktransfer.core.nodes import Node

Round = Literal["best", "last"] | int
"""A round of a stage: the best by its selection, the last, or its number (0: untrained)."""
Merge = Literal["mean", "max", "min", "ties"]


@dataclass(frozen=True)
class Start:
    """Parameters that a stage or an outcome starts from.

    Attributes:
        stage: stage that they come from, None for the base model.
        at: round of the stage.
        parts: named parts to use (``family.parts``), empty for all parts that both models have.
        into: names of the parts in the new model, empty for the same names.
        merged: element-wise merge of several starts that have the same parts.
    """

    stage: Stage | None
    at: Round = "best"
    parts: tuple[str, ...] = ()
    into: tuple[str, ...] = ()
    merged: Merge | None = None

    def __post_init__(self) -> None:
        if self.stage and self.at != "best" and not self.stage.keeps_rounds:
            raise ConfigError(
                f"start from {self.stage.label} at {self.at}: The stage keeps only the checkpoint "
                "of its best round. Set the stage's selection to keep: every, or start at best."
            )
        if self.stage and isinstance(self.at, int) and not self.stage.keeps_round(self.at):
            raise ConfigError(
                f"start from {self.stage.label} at {self.at}: The stage keeps only the "
                f"checkpoints of the rounds {', '.join(map(str, self.stage.selection.rounds))}. "
                f"Add the round {self.at} to the rounds of the stage's selection."
            )

    @property
    def is_plain(self) -> bool:
        """True if the start is the complete best round of a stage."""
        return (self.at, self.parts, self.into, self.merged) == ("best", (), (), None)

    @property
    def selected_on(self) -> tuple[str, ...]:
        """Tasks that selected the start's round, unless they are the stage's training tasks.

        They identify one of several best rounds that the stage may have.
        """
        if self.stage is None or self.at != "best":
            return ()
        return self.stage.list_identifying_tasks(self.stage.selection)

    @property
    def identity(self) -> dict[str, Any]:
        chosen = {
            "selected_on": list(self.selected_on),
            "parts": list(self.parts),
            "into": list(self.into),
            "merged": self.merged,
        }
        return {
            "stage": self.stage.digest if self.stage else None,
            "at": self.at,
            **drop_empty_values(chosen),
        }


@dataclass(frozen=True)
class Stage:
    """One training run: its tasks, the selection of its best round, and its starts.

    The tasks that select the best round change no update, so training runs that differ only in them
    are one stage. ``selection`` belongs to the requesting node, ``also_selected`` to other nodes of
    the plan. The run saves a best round for each of them (ADR 0029).

    Attributes:
        train_tasks: training tasks, a sorted set, as are the selecting tasks.
        starts: starts, empty for the base model.
        trains: named parts that are trained, empty for all.
        tests: tasks whose test splits are predicted and scored with the best round by the training
            process. None for the selecting task if there is one, and for no task if there are
            several.
        recipe: version of the training code, the latest of its tasks' versions.
    """

    kind: str
    label: str
    data: Data
    model: ModelSpec
    train_tasks: tuple[str, ...]
    selection: Selection
    training: Training
    seed: int
    starts: tuple[Start, ...] = ()
    trains: tuple[str, ...] = ()
    sampler: Sampler = "task_batches"
    tests: tuple[str, ...] | None = None
    recipe: int = RECIPE_VERSION
    also_selected: tuple[Selection, ...] = ()

    def __post_init__(self) -> None:
        if self.tests and self.also_selected:
            raise ConfigError(
                f"{self.label}: The best round is selected on several sets of tasks, so the round "
                f"to test on {', '.join(self.tests)} is undefined. Use an evaluation instead."
            )
        if self.starts and (problem := self._unfit_adapter):
            raise ConfigError(f"{self.label}: {problem}")

    @property
    def _unfit_adapter(self) -> str | None:
        """Reason why the adapters of its starts prevent the stage from starting, or None."""
        own = self.model.adapter
        others = [start.stage for start in self.starts if start.stage is not None]
        if strange := [other.label for other in others if other.model.adapter != own]:
            return (
                f"The stage starts from {strange[0]}, but only one of the two has an adapter, or "
                "their adapters differ. Set models[].adapter to the same value for both."
            )
        if own is not None and own.start != "continue" and others and not self.starts_whole:
            return (
                f"adapter.start {own.start} needs the complete best round of one training run, but "
                "parts or other rounds are requested. Set models[].adapter.start: continue."
            )
        return None

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Content of the stage that affects its numbers, including digests of earlier stages."""
        return {
            "recipe": self.recipe,
            **self.data.build_identity(self._tasks_of_cards),
            "model": self.model.identity,
            "train_tasks": list(self.train_tasks),
            "parent": self.starts[0].identity["stage"] if self.starts_whole else None,
            "training": self.training.identity,
            "seed": self.seed,
            **self._changed_parts,
        }

    @property
    def _tasks_of_cards(self) -> tuple[str, ...]:
        """Tasks of the stage's training, selection and tests, whose cards affect its numbers."""
        return (*self.train_tasks, *self.selection.tasks, *(self.tests or ()))

    @property
    def starts_whole(self) -> bool:
        """True if the stage starts from the complete best round of a single stage."""
        return len(self.starts) == 1 and self.starts[0].is_plain

    @property
    def reads_base(self) -> bool:
        """True if the stage reads the released model.

        It does if it starts from it, or if it trains an adapter, whose checkpoints do not contain
        the model's weights.
        """
        return not self.starts_whole or self.model.adapter is not None

    @property
    def adapter_start(self) -> AdapterStart | None:
        """Use of the parent's adapter (merge or stack), or None if it is trained further."""
        adapter = self.model.adapter
        if adapter is None or adapter.start == "continue" or not self.starts_whole:
            return None
        return adapter.start

    @property
    def _changed_parts(self) -> dict[str, Any]:
        """Parts of the stage's identity that differ from their default."""
        values = {
            "parent_selected_on": list(self.starts[0].selected_on) if self.starts_whole else [],
            "selection": self.selection.identity,
            "starts": [] if self.starts_whole else [start.identity for start in self.starts],
            "trains": list(self.trains),
            "sampler": "" if self.sampler == "task_batches" else self.sampler,
            "adapter_start": self.adapter_start or "",
        }
        chosen = drop_empty_values(values)
        return chosen if self.tests is None else {**chosen, "tests": list(self.tests)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the stage's identity in hex."""
        return compute_digest(self.identity)

    @property
    def reference(self) -> Any:
        """Value that refers to the stage in other nodes' identities.

        It is the digest, with the selecting tasks if they are not the training tasks.
        """
        start = Start(self)
        return start.identity if start.selected_on else self.digest

    @property
    def dataset(self) -> str:
        """Name of the stage's dataset."""
        return self.data.name

    @property
    def select_on(self) -> tuple[str, ...]:
        """Tasks whose dev splits select the requested round."""
        return self.selection.tasks

    @property
    def selections(self) -> tuple[Selection, ...]:
        """All selections of rounds, sorted by their tasks."""
        return tuple(
            sorted((self.selection, *self.also_selected), key=lambda selection: selection.tasks)
        )

    @property
    def measured_on(self) -> tuple[str, ...]:
        """Sorted tasks whose dev splits are evaluated after every round."""
        return tuple(sorted({task for selection in self.selections for task in selection.tasks}))

    @property
    def tested(self) -> tuple[str, ...]:
        """Sorted tasks whose test splits are scored."""
        return tuple(
            task for selection in self.selections for task in self.list_tested_tasks(selection)
        )

    def list_tested_tasks(self, selection: Selection) -> tuple[str, ...]:
        """Return the tasks that are tested with the round of a selection."""
        if self.tests is not None:
            return self.tests
        return selection.tasks if len(selection.tasks) == 1 else ()

    def list_identifying_tasks(self, selection: Selection) -> tuple[str, ...]:
        """Return the tasks that identify a selection's round.

        They are empty if they are the training tasks.
        """
        return () if selection.tasks == self.train_tasks else selection.tasks

    @property
    def tasks(self) -> tuple[str, ...]:
        """Sorted tasks of the stage's training, selection and tests."""
        return tuple(sorted({*self.train_tasks, *self.measured_on, *self.tested}))

    @property
    def new_heads(self) -> tuple[str, ...]:
        """Training tasks whose heads are not copied from an earlier stage."""
        trained: set[str] = set()
        for start in self.starts:
            if start.stage is not None:
                copied = start.into or start.parts
                named = {part.removeprefix("head.") for part in copied}
                trained |= named if copied else set(start.stage.train_tasks)
        return tuple(task for task in self.train_tasks if task not in trained)

    def keeps_round(self, number: int) -> bool:
        """Return whether the parameters of a round are kept even if it is not the best."""
        return any(selection.keeps_round(number) for selection in self.selections)

    @property
    def keeps_rounds(self) -> bool:
        """True if the stage keeps parameters of rounds that are not the best."""
        return any(selection.keep == "every" for selection in self.selections)

    @property
    def parents(self) -> tuple[Stage, ...]:
        """Distinct stages from which the stage starts."""
        return list_stages(self.starts)

    @property
    def uses(self) -> tuple[Node, ...]:
        """Nodes that must be finished before the stage."""
        return (*([self.data] if self.data.recipe else []), *self.parents)

    @cached_property
    def path(self) -> str:
        """Folder of the stage's results, relative to the results folder."""
        return (
            f"stages/{self.kind}/{self.data.name}/{self.model.name}/{self.label}"
            f"/seed{self.seed}-{self.digest[:SHORT]}"
        )


def list_stages(starts: tuple[Start, ...]) -> tuple[Stage, ...]:
    """Return the distinct stages of starts."""
    return tuple({start.stage.digest: start.stage for start in starts if start.stage}.values())


def merge_selections(stage: Stage, others: Iterable[Stage]) -> Stage:
    """Return a stage that also has the selections of equal stages."""
    selections = {selection.tasks: selection for selection in stage.selections}
    for other in (selection for equal in others for selection in equal.selections):
        same = selections.get(other.tasks)
        selections[other.tasks] = other if same is None else same.merge_rounds(other)
    own = selections.pop(stage.select_on)
    also = tuple(selections[tasks] for tasks in sorted(selections))
    if (own, also) == (stage.selection, stage.also_selected):
        return stage
    return replace(stage, selection=own, also_selected=also)
