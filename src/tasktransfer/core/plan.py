"""A plan: the runs of a study and the distinct nodes that they share.

The runs of a method are planned from its steps, which are its stages without model, data and seed.
The module uses the standard library only, because the Snakefile imports it at every start.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from tasktransfer.core.identity import HEAD_RECIPES, RECIPE_VERSION
from tasktransfer.core.nodes import (
    SHORT,
    Data,
    Evaluation,
    Fit,
    Merge,
    Node,
    Outcome,
    Round,
    Stage,
    Start,
    merge_selections,
)
from tasktransfer.core.runs import Run, add_ancestors, collect_stages
from tasktransfer.core.specs import OPEN, Family, ModelSpec, Rounds, Sampler, Selection, Training
from tasktransfer.errors import ConfigError


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
        """Return the starts of the step, with ``previous`` replaced by a step.

        Args:
            before: previous step of the method, None for the first step.
        """
        start = before if self.start == "previous" else self.start
        if start is None:
            return ()
        if isinstance(start, Step):
            return (From(start),)
        return (start,) if isinstance(start, From | Start) else tuple(start)


MAX_NODES = 50_000
"""Maximum number of nodes of a plan, eight times the number in the largest paper's study.

Opening such a plan takes about 10 s. Snakemake needs 30 s and 0.5 GB for 20,000 nodes.
"""


@dataclass(frozen=True)
class Choice:
    """A selection that is made once from the results of nodes, and adds runs or further choices.

    Attributes:
        name: letters, digits, ``_`` and ``-``.
        after: nodes whose records the choice is made from.
        made: True if the choice is made.
        like: examples of the stages that this choice, or choices that follow from it, add. The
            output files of each kind of stage have to be known before the choice is made.
        announcement: clause that says which trainings follow when the choice is made.
    """

    name: str
    after: tuple[Node, ...]
    made: bool
    like: tuple[Stage, ...] = ()
    announcement: str = "further trainings follow when they are selected"


def get_relative_choice_path(name: str) -> str:
    """Return the path of a choice's file, relative to the results folder.

    The workflow takes every JSON file in this folder for a choice, so tables are not JSON files.
    """
    return f"tables/{name}.json"


@dataclass(frozen=True)
class Plan:
    """The runs of a study and its distinct nodes, in topological order.

    Attributes:
        choices: choices that some runs depend on, as far as they are known. A choice may become
            known when another is made. Empty if the config alone determines all runs.
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
        """Nodes by digest (the first 12 hex digits, as in paths)."""
        return {node.digest[:SHORT]: node for node in self.nodes}

    @cached_property
    def _methods_by_digest(self) -> dict[str, str]:
        judged: dict[str, str] = {}
        for run in self.runs:
            if isinstance(run.outcome, Outcome) and len(run.outcome.stages) == 1:
                judged.setdefault(run.outcome.stages[0].digest, run.method)
        return judged

    def get_group(self, stage: Stage) -> str:
        """Return the method whose score a stage's record contains, the first of several.

        For a stage that only serves as a start of others, return its kind in parentheses.
        """
        return self._methods_by_digest.get(stage.digest, f"({stage.kind})")

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Groups of stages (``get_group``): methods in the order of runs, then kinds."""
        kinds = (self.get_group(stage) for stage in self.stages)
        return tuple(dict.fromkeys([*self._methods_by_digest.values(), *kinds]))

    def count_runs(self) -> dict[str, int]:
        """Count the runs of each method, with separate counts for its variants."""
        return dict(Counter(", ".join(filter(None, (r.method, r.variant))) for r in self.runs))


def check_plan_size(count: int) -> None:
    """Raise an error if a plan has too many runs or nodes.

    Raises:
        PlanTooLargeError: the number exceeds ``MAX_NODES``.
    """
    if count > MAX_NODES:
        raise PlanTooLargeError(
            # The caller adds which keys to lower.
            f"The study has at least {count:,} runs, but a plan may contain at most {MAX_NODES:,}"
        )


class PlanTooLargeError(ConfigError):
    """A config has more runs or nodes than a plan may have."""


class PlanBuilder:
    """A builder that collects runs and their nodes, so that equal nodes are one object.

    Args:
        name_stage: function that returns kind and label of a step's stage, for paths and people.
        get_recipe: function that returns the recipe version of a training run with some tasks of a
            dataset, for a family; None for the general version.
    """

    def __init__(
        self,
        name_stage: Callable[[Step, tuple[Start, ...]], tuple[str, str]],
        get_recipe: Callable[[str, tuple[str, ...], Family], int] | None = None,
    ) -> None:
        self._get_kind_and_label = name_stage
        self._get_recipe = get_recipe or (lambda dataset, tasks, family: RECIPE_VERSION)
        self._stages: dict[str, list[Stage]] = defaultdict(list)
        """Digest → the stage's variants that steps request, with different selections."""
        self._nodes: dict[str, Node] = {}
        self._requests: dict[int, Stage] = {}
        """Stages that runs and nodes of the plan request, by Python's id of the object."""
        self._runs: list[Run] = []

    def add_run(self, run: Run) -> None:
        """Add a run with its outcome, its evaluations and all their ancestors."""
        self._runs.append(run)
        check_plan_size(max(len(self._runs), len(self._nodes)))
        for node in add_ancestors((*run.judged, *run.evaluations)):
            self._nodes.setdefault(node.digest, node)
        self._requests.update(collect_stages((*run.judged, *run.evaluations), self._requests))

    def register_stage(self, stage: Stage) -> None:
        """Register a stage that a later choice may add to the plan.

        If the stage is already in the plan with another selection, it selects a round for this one,
        too.
        """
        self._requests[id(stage)] = stage

    def build_stages(
        self,
        steps: Sequence[Step],
        data: Data,
        model: ModelSpec,
        training: Training,
        seed: int,
        rounds: Rounds = OPEN,
    ) -> dict[Step, Stage]:
        """Return the stage for each step of a method, given data, model, settings and seed.

        The stages enter the plan when a run with them is added.

        Args:
            rounds: defaults for steps that do not define their rounds.
        """
        stages: dict[Step, Stage] = {}
        before: Step | None = None
        for step in steps:
            starts = tuple(
                begin
                if isinstance(begin, Start)
                else Start(stages[begin.step], begin.at, begin.parts, begin.into, begin.merged)
                for begin in step.resolve_starts(before)
            )
            kind, label = self._get_kind_and_label(step, starts)
            read, trained = step.data or data, step.model or model
            involved = (*step.train_tasks, *step.selection.tasks, *(step.test_on or ()))
            applied = trained.apply_learning_rate(step.training or training)
            recipe = self._get_recipe(read.name, involved, trained.family)
            recipe = max(recipe, HEAD_RECIPES.get(applied.head_initialization, 0))
            stage = Stage(
                kind=kind,
                label=label,
                data=read,
                model=trained,
                train_tasks=tuple(sorted(step.train_tasks)),
                selection=rounds.apply_to(
                    replace(step.selection, tasks=tuple(sorted(step.selection.tasks)))
                ),
                training=applied,
                seed=seed,
                starts=starts,
                trains=step.trains,
                sampler=step.sampler,
                tests=None if step.test_on is None else tuple(sorted(step.test_on)),
                recipe=recipe,
            )
            stages[step] = self._register_stage(stage)
            check_plan_size(len(self._stages))
            before = step
        return stages

    def _register_stage(self, stage: Stage) -> Stage:
        """Return the registered stage that equals a stage, or register the stage.

        A stage that differs from a known stage in its selection only is the same training run, and
        gets its name.
        """
        equal = self._stages[stage.digest]
        for known in equal:
            if known.selection == stage.selection:
                return known
        if equal:
            stage = replace(stage, kind=equal[0].kind, label=equal[0].label)
        equal.append(stage)
        return stage

    def build_plan(self, choices: Sequence[Choice] = ()) -> Plan:
        """Return the plan with all added runs and their nodes in topological order.

        Each stage has the selections of all nodes that request it.
        """
        requests: dict[str, list[Stage]] = defaultdict(list)
        for stage in self._requests.values():
            requests[stage.digest].append(stage)
        nodes = (
            merge_selections(node, requests[node.digest]) if isinstance(node, Stage) else node
            for node in self._nodes.values()
        )
        return Plan(tuple(self._runs), tuple(nodes), tuple(choices))
