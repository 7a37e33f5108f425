"""A plan: the runs of a study and the distinct nodes that they share.

Pure and standard library only, since the Snakefile imports it at every start.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tasktransfer.core.ancestors import stages_asked_for, with_ancestors
from tasktransfer.core.nodes import (
    SHORT,
    Data,
    Evaluation,
    Fit,
    Node,
    Outcome,
    Stage,
    Start,
    with_all_selections,
)
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import OPEN, Family, ModelSpec, Rounds, Training
from tasktransfer.core.steps import Step
from tasktransfer.core.versions import RECIPE_VERSION
from tasktransfer.errors import ConfigError

MOST_NODES = 50_000
"""Of a plan, eight times the largest paper's: opening one takes some 10 s, and Snakemake takes 30 s
and 0.5 GB for 20,000."""


@dataclass(frozen=True)
class Choice:
    """A choice that is made once, from the results of some nodes, and adds runs to the plan, or
    further choices.

    ``name``: letters, digits, ``_`` and ``-``. ``after``: the nodes whose records it is made from.
    ``like``: stages like those that it adds, or that a choice adds which follows from it: what
    each kind of stage leaves has to be known before it is made.
    """

    name: str
    after: tuple[Node, ...]
    made: bool
    like: tuple[Stage, ...] = ()


def choice_file(name: str) -> str:
    """Where a choice is written down, relative to the results folder. No table is a JSON file: the
    workflow takes every such name for a choice's."""
    return f"tables/{name}.json"


@dataclass(frozen=True)
class Plan:
    """The runs of a study and its distinct nodes, those that others use before these.

    ``choices``: what some of the runs follow from, as far as they are known; one may become known
    when another is made. Empty: the config alone says all runs.
    """

    runs: tuple[Run, ...]
    nodes: tuple[Node, ...]
    choices: tuple[Choice, ...] = ()

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(node for node in self.nodes if isinstance(node, Stage))

    @cached_property
    def derived(self) -> tuple[Data, ...]:
        return tuple(node for node in self.nodes if isinstance(node, Data))

    @cached_property
    def fits(self) -> tuple[Fit, ...]:
        return tuple(node for node in self.nodes if isinstance(node, Fit))

    @cached_property
    def evaluations(self) -> tuple[Evaluation, ...]:
        return tuple(node for node in self.nodes if isinstance(node, Evaluation))

    @cached_property
    def by_digest(self) -> dict[str, Node]:
        """Digest (first 12 hex digits, as in paths) → node."""
        return {node.digest[:SHORT]: node for node in self.nodes}

    @cached_property
    def _method_of(self) -> dict[str, str]:
        judged: dict[str, str] = {}
        for run in self.runs:
            if isinstance(run.outcome, Outcome) and len(run.outcome.stages) == 1:
                judged.setdefault(run.outcome.stages[0].digest, run.method)
        return judged

    def group_of(self, stage: Stage) -> str:
        """The method that a stage's own record gives the score of, the first of several; a kind of
        stage in parentheses where others only start from it."""
        return self._method_of.get(stage.digest, f"({stage.kind})")

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The values of ``group_of``: methods in the order of the runs, then kinds of stages."""
        kinds = (self.group_of(stage) for stage in self.stages)
        return tuple(dict.fromkeys([*self._method_of.values(), *kinds]))

    def counts(self) -> dict[str, int]:
        """Runs per method, variants apart."""
        return dict(Counter(", ".join(filter(None, (r.method, r.variant))) for r in self.runs))


def refuse_large(count: int) -> None:
    """Refuse a plan of so many runs or nodes, before memory and time do.

    Raises:
        PlanTooLargeError: they are more than ``MOST_NODES``.
    """
    if count > MOST_NODES:
        raise PlanTooLargeError(f"asks for {count:,} runs or more, and a plan holds {MOST_NODES:,}")


class PlanTooLargeError(ConfigError):
    """A config asks for more than a plan holds."""


class PlanBuilder:
    """Collects runs and their nodes, so that equal nodes are one object.

    Args:
        name_of: kind and label of a step's stage, for paths and people.
        recipe_of: the recipe of trainings with some tasks of a dataset, for a family; that of all
            where none is given.
    """

    def __init__(
        self,
        name_of: Callable[[Step, tuple[Start, ...]], tuple[str, str]],
        recipe_of: Callable[[str, tuple[str, ...], Family], int] | None = None,
    ) -> None:
        self._name_of = name_of
        self._recipe_of = recipe_of or (lambda dataset, tasks, family: RECIPE_VERSION)
        self._stages: dict[str, list[Stage]] = defaultdict(list)
        """Digest → the stage as steps ask for it: they differ in their selections."""
        self._nodes: dict[str, Node] = {}
        self._asked: dict[int, Stage] = {}
        """The stages as runs and nodes of the plan ask for them, by the object."""
        self._runs: list[Run] = []

    def add(self, run: Run) -> None:
        """A run, with its outcome and evaluations and all that they use."""
        self._runs.append(run)
        refuse_large(max(len(self._runs), len(self._nodes)))
        for node in with_ancestors((*run.judged, *run.evaluations)):
            self._nodes.setdefault(node.digest, node)
        self._asked.update(stages_asked_for((*run.judged, *run.evaluations), self._asked))

    def expect(self, stage: Stage) -> None:
        """A stage that a choice may ask for, whose result it must not wait for: if it is in the
        plan for another selection, it chooses a round for this one too."""
        self._asked[id(stage)] = stage

    def stages(
        self,
        steps: Sequence[Step],
        data: Data,
        model: ModelSpec,
        training: Training,
        seed: int,
        rounds: Rounds = OPEN,
    ) -> dict[Step, Stage]:
        """The stage of each step of a method, on a run's data, model, hyperparameters and seed.
        The plan has those that a run is added for. ``rounds``: for steps that leave theirs open."""
        stages: dict[Step, Stage] = {}
        before: Step | None = None
        for step in steps:
            starts = tuple(
                begin
                if isinstance(begin, Start)
                else Start(stages[begin.step], begin.at, begin.parts, begin.into, begin.merged)
                for begin in step.starts(before)
            )
            kind, label = self._name_of(step, starts)
            read, trained = step.data or data, step.model or model
            involved = (*step.train_tasks, *step.selection.tasks, *(step.test_on or ()))
            stage = Stage(
                kind=kind,
                label=label,
                data=read,
                model=trained,
                train_tasks=tuple(sorted(step.train_tasks)),
                selection=rounds.apply_to(
                    replace(step.selection, tasks=tuple(sorted(step.selection.tasks)))
                ),
                training=trained.trained_by(step.training or training),
                seed=seed,
                starts=starts,
                trains=step.trains,
                sampler=step.sampler,
                tests=None if step.test_on is None else tuple(sorted(step.test_on)),
                recipe=self._recipe_of(read.name, involved, trained.family),
            )
            stages[step] = self._known(stage)
            refuse_large(len(self._stages))
            before = step
        return stages

    def _known(self, stage: Stage) -> Stage:
        """The stage that was made for the same question; another selection of one that is there
        takes its name, as it is the same training."""
        equal = self._stages[stage.digest]
        for known in equal:
            if known.selection == stage.selection:
                return known
        if equal:
            stage = replace(stage, kind=equal[0].kind, label=equal[0].label)
        equal.append(stage)
        return stage

    def plan(self, choices: Sequence[Choice] = ()) -> Plan:
        """Everything that was added, nodes before those that use them; a stage with the selections
        of all that ask for it."""
        asked: dict[str, list[Stage]] = defaultdict(list)
        for stage in self._asked.values():
            asked[stage.digest].append(stage)
        nodes = (
            with_all_selections(node, asked[node.digest]) if isinstance(node, Stage) else node
            for node in self._nodes.values()
        )
        return Plan(tuple(self._runs), tuple(nodes), tuple(choices))
