"""Trainings, and the parameters that they and what is judged begin with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tasktransfer.core.digests import digest_of
from tasktransfer.core.nodes.data import Data
from tasktransfer.core.nodes.identity import SHORT, stated
from tasktransfer.core.specs import (
    REFUSE_UNKNOWN,
    AdapterStart,
    ModelSpec,
    Sampler,
    Selection,
    Training,
)
from tasktransfer.core.versions import RECIPE_VERSION
from tasktransfer.errors import ConfigError

if TYPE_CHECKING:
    from tasktransfer.core.nodes import Node

Round = Literal["best", "last"] | int
"""A round of a stage: the best by its selection, the last, or its number (0: untrained)."""
Merge = Literal["mean", "max", "min", "ties"]


@dataclass(frozen=True)
class Start:
    """Parameters that a stage or an outcome begins with.

    ``stage``: where they come from; None: the base model. ``at``: which of its rounds. ``parts``:
    the named parts that are taken (``family.parts``); none: all that both models have. ``into``:
    what they are called here; none: the same. ``merged``: several starts that lead into the same
    parts are merged element by element.
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

    stage: Stage | None
    at: Round = "best"
    parts: tuple[str, ...] = ()
    into: tuple[str, ...] = ()
    merged: Merge | None = None

    def __post_init__(self) -> None:
        if self.stage and self.at != "best" and not self.stage.keeps_rounds:
            raise ConfigError(
                f"start from {self.stage.label} at {self.at}: this stage keeps its best round "
                "alone; give its selection keep: every, or start at best"
            )
        if self.stage and isinstance(self.at, int) and not self.stage.keeps(self.at):
            raise ConfigError(
                f"start from {self.stage.label} at {self.at}: this stage keeps the rounds "
                f"{', '.join(map(str, self.stage.selection.rounds))}; add {self.at} to them"
            )

    @property
    def is_plain(self) -> bool:
        """Whether it is all of a stage's best round."""
        return (self.at, self.parts, self.into, self.merged) == ("best", (), (), None)

    @property
    def selected_on(self) -> tuple[str, ...]:
        """The tasks by which its round was chosen, where these are not the stage's training tasks:
        they name one of the several rounds that such a stage may leave."""
        if self.stage is None or self.at != "best":
            return ()
        return self.stage.told_apart(self.stage.selection)

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
            **stated(chosen),
        }


@dataclass(frozen=True)
class Stage:
    """One training: what to train on, what selects the best round, and where to start.

    ``train_tasks`` and the selecting tasks are sets and sorted. ``starts``: none is the base model.
    ``trains``: the named parts that move; none: all. ``tests``: the tasks whose test splits are
    predicted and scored with the best round, in the training's own process; None: the selecting
    task where there is one, and none where there are several. ``recipe``: the latest of its
    tasks' recipes.

    By whose dev splits a round is chosen changes no update, so trainings that differ in it alone
    are one: ``selection`` is that of who asks for the stage, ``also_selected`` those of others in
    the same plan, and the training leaves a best round for each (ADR 0029).
    """

    __pydantic_config__: ClassVar = REFUSE_UNKNOWN

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
                f"{self.label}: its best round is chosen by several sets of tasks, and tests on "
                f"{', '.join(self.tests)} do not say with which round; ask for an evaluation"
            )
        if self.starts and (problem := self._unfit_adapter):
            raise ConfigError(f"{self.label}: {problem}")

    @property
    def _unfit_adapter(self) -> str | None:
        """What keeps it from starting with the adapters of its starts."""
        own = self.model.adapter
        others = [start.stage for start in self.starts if start.stage is not None]
        if strange := [other.label for other in others if other.model.adapter != own]:
            return (
                f"starts from {strange[0]}, which is trained with another adapter, or with one "
                "alone of the two; give both the same models[].adapter"
            )
        if own is not None and own.start != "continue" and others and not self.starts_whole:
            return (
                f"an adapter is started by {own.start} from all of one training's best round, and "
                "parts or other rounds are asked for; set models[].adapter.start: continue"
            )
        return None

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that changes this stage's numbers; those it starts from by their digests."""
        return {
            "recipe": self.recipe,
            **self.data.identity_for(self._read),
            "model": self.model.identity,
            "train_tasks": list(self.train_tasks),
            "parent": self.starts[0].identity["stage"] if self.starts_whole else None,
            "training": self.training.identity,
            "seed": self.seed,
            **self._set,
        }

    @property
    def _read(self) -> tuple[str, ...]:
        """The tasks whose cards change its numbers: of training, its own selection, and tests."""
        return (*self.train_tasks, *self.selection.tasks, *(self.tests or ()))

    @property
    def starts_whole(self) -> bool:
        """Whether it goes on from all of another stage's best round, and from nothing else."""
        return len(self.starts) == 1 and self.starts[0].is_plain

    @property
    def reads_base(self) -> bool:
        """Whether it reads the released model: where it begins with it, or trains an adapter, whose
        checkpoints have nothing of the model under it."""
        return not self.starts_whole or self.model.adapter is not None

    @property
    def adapter_start(self) -> AdapterStart | None:
        """What becomes of the adapter that it starts from, where it does not just go on."""
        adapter = self.model.adapter
        if adapter is None or adapter.start == "continue" or not self.starts_whole:
            return None
        return adapter.start

    @property
    def _set(self) -> dict[str, Any]:
        """What is not at its default."""
        values = {
            "parent_selected_on": list(self.starts[0].selected_on) if self.starts_whole else [],
            "selection": self.selection.identity,
            "starts": [] if self.starts_whole else [start.identity for start in self.starts],
            "trains": list(self.trains),
            "sampler": "" if self.sampler == "task_batches" else self.sampler,
            "adapter_start": self.adapter_start or "",
        }
        chosen = stated(values)
        return chosen if self.tests is None else {**chosen, "tests": list(self.tests)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the identity, in hex."""
        return digest_of(self.identity)

    @property
    def reference(self) -> Any:
        """What stands for it in the identity of a node that reads it: its digest, and also what
        chose its round, where that does not follow from its training tasks."""
        start = Start(self)
        return start.identity if start.selected_on else self.digest

    @property
    def dataset(self) -> str:
        """The dataset whose instances are read."""
        return self.data.name

    @property
    def select_on(self) -> tuple[str, ...]:
        """The tasks whose dev splits select the round that is asked for here."""
        return self.selection.tasks

    @property
    def selections(self) -> tuple[Selection, ...]:
        """All that choose a round of it, sorted by their tasks."""
        return tuple(
            sorted((self.selection, *self.also_selected), key=lambda selection: selection.tasks)
        )

    @property
    def measured_on(self) -> tuple[str, ...]:
        """The tasks whose dev splits are measured after every round, sorted."""
        return tuple(sorted({task for selection in self.selections for task in selection.tasks}))

    @property
    def tested(self) -> tuple[str, ...]:
        """The tasks whose test splits are scored, sorted."""
        return tuple(task for selection in self.selections for task in self.tested_by(selection))

    def tested_by(self, selection: Selection) -> tuple[str, ...]:
        """The tasks whose test splits are scored with the round that a selection has chosen."""
        if self.tests is not None:
            return self.tests
        return selection.tasks if len(selection.tasks) == 1 else ()

    def told_apart(self, selection: Selection) -> tuple[str, ...]:
        """What names the round that a selection has chosen: its tasks, or nothing where these are
        the training tasks."""
        return () if selection.tasks == self.train_tasks else selection.tasks

    @property
    def tasks(self) -> tuple[str, ...]:
        """Every task that is trained, selects or is tested, sorted."""
        return tuple(sorted({*self.train_tasks, *self.measured_on, *self.tested}))

    def keeps(self, number: int) -> bool:
        """Whether the parameters of a round are left, whatever was best."""
        return any(selection.keeps(number) for selection in self.selections)

    @property
    def keeps_rounds(self) -> bool:
        """Whether parameters of other rounds than the best are left."""
        return any(selection.keep == "every" for selection in self.selections)

    @property
    def parents(self) -> tuple[Stage, ...]:
        """The stages that it starts from, each once."""
        return stages_of(self.starts)

    @property
    def uses(self) -> tuple[Node, ...]:
        """The nodes that have to be there before it."""
        return (*([self.data] if self.data.recipe else []), *self.parents)

    @cached_property
    def path(self) -> str:
        """Where its results live, relative to the results folder; ends in the digest."""
        return (
            f"stages/{self.kind}/{self.data.name}/{self.model.name}/{self.label}"
            f"/seed{self.seed}-{self.digest[:SHORT]}"
        )


def stages_of(starts: tuple[Start, ...]) -> tuple[Stage, ...]:
    return tuple({start.stage.digest: start.stage for start in starts if start.stage}.values())


def with_all_selections(stage: Stage, others: Iterable[Stage]) -> Stage:
    """A stage that leaves what it and equal stages are asked for."""
    selections = {selection.tasks: selection for selection in stage.selections}
    for other in (selection for equal in others for selection in equal.selections):
        same = selections.get(other.tasks)
        selections[other.tasks] = other if same is None else same.with_rounds_of(other)
    own = selections.pop(stage.select_on)
    also = tuple(selections[tasks] for tasks in sorted(selections))
    if (own, also) == (stage.selection, stage.also_selected):
        return stage
    return replace(stage, selection=own, also_selected=also)
