"""The transfer algorithms: each is a list of steps, and nothing else.

This is the only module that knows what each algorithm does with sources and target. Everything
below it sees a step: tasks to train on, the tasks whose dev score selects the best epoch, and the
step that it starts from. A new method that is a new order of trainings is a new function here, with
its entry in ``ALGORITHMS``, and no second trainer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tasktransfer.core.nodes import Merge
from tasktransfer.core.specs import Selection
from tasktransfer.core.steps import From, Step
from tasktransfer.errors import ConfigError

Tasks = tuple[str, ...]


def _step(train_tasks: Tasks, selecting: Tasks) -> Step:
    return Step(train_tasks, Selection(selecting))


def baseline(sources: Tasks, target: str) -> list[Step]:
    """The target alone (paper, section 3.3): what every transfer is compared with."""
    if sources:
        raise ConfigError(f"the baseline of {target} has no sources, got {', '.join(sources)}")
    return [_step((target,), (target,))]


def pretrain_finetune(sources: Tasks, target: str) -> list[Step]:
    """Train on the sources, then on the target (paper, section 4, STILTs).

    The first step is selected on the sources' own dev sets; with one source it *is* the source's
    baseline, and the plan trains it once.
    """
    return [_step(sources, sources), _step((target,), (target,))]


def multitask(sources: Tasks, target: str) -> list[Step]:
    """Sources and target together, the best epoch chosen on the target alone (section 4)."""
    return [_step((*sources, target), (target,))]


def multitask_finetune(sources: Tasks, target: str) -> list[Step]:
    """Multitask first, then the target alone from the multitask model's best epoch (section 4)."""
    return [*multitask(sources, target), _step((target,), (target,))]


def sequential(sources: Tasks, target: str) -> list[Step]:
    """One source after the other, the target last; the order of the sources matters.

    Not in the paper. With one source it is pretrain_finetune.
    """
    return [_step((task,), (task,)) for task in (*sources, target)]


def temperature(sources: Tasks, target: str) -> list[Step]:
    """Multitask, tasks drawn by the square root of their sizes (``samplers.TEMPERATURE``). Not in
    the paper."""
    return [replace(step, sampler="temperature") for step in multitask(sources, target)]


def random_weights(sources: Tasks, target: str) -> list[Step]:
    """Multitask, losses weighted at random: the control for whatever weighs tasks. Not in the
    paper."""
    return [replace(step, sampler="random_weights") for step in multitask(sources, target)]


def exp3(sources: Tasks, target: str) -> list[Step]:
    """Target and one source an update, the source drawn by a bandit that is rewarded where their
    gradients agree (FLAD: Albalak 2023, EXP3). Not in the paper."""
    return [replace(step, sampler="exp3") for step in multitask(sources, target)]


def ucb1(sources: Tasks, target: str) -> list[Step]:
    """The same, the source with the best upper confidence bound (FLAD, UCB1). Not in the paper."""
    return [replace(step, sampler="ucb1") for step in multitask(sources, target)]


def average(sources: Tasks, target: str) -> list[Step]:
    """The mean of the sources' models, without their heads, then the target. Not in the paper."""
    return _from_merged(sources, target, "mean")


def ties(sources: Tasks, target: str) -> list[Step]:
    """The sources' models merged by TIES, without their heads, then the target (Yadav 2023)."""
    return _from_merged(sources, target, "ties")


def _from_merged(sources: Tasks, target: str, merged: Merge) -> list[Step]:
    """The sources' baselines, and the target from all of them: what they and it have in common."""
    alone = [replace(_step((source,), (source,)), start=None) for source in sources]
    starts = tuple(From(step, merged=merged) for step in alone)
    return [*alone, replace(_step((target,), (target,)), start=starts)]


Algorithm = Callable[[Tasks, str], list[Step]]

ALGORITHMS: dict[str, Algorithm] = {
    "baseline": baseline,
    "pretrain_finetune": pretrain_finetune,
    "multitask": multitask,
    "multitask_finetune": multitask_finetune,
    "sequential": sequential,
    "temperature": temperature,
    "random_weights": random_weights,
    "exp3": exp3,
    "ucb1": ucb1,
    "average": average,
    "ties": ties,
}

BANDITS = ("exp3", "ucb1")
"""Those that learn while they train which source to train on."""

PAPER_ALGORITHMS = ("baseline", "pretrain_finetune", "multitask", "multitask_finetune")
"""What ``all`` means in a config."""

TRANSFER_ALGORITHMS = tuple(name for name in ALGORITHMS if name != "baseline")

STAGE_KINDS = ("baseline", "multitask", "finetune", "control")
"""What trainings are called in paths and logs, see ``plan.kind_of``."""

ORDERED = frozenset({"sequential"})
"""Algorithms to which the order of the sources matters; to the others sources are a set."""


def in_order(algorithm: str, sources: Tasks) -> Tasks:
    """The sources of a run as it is named: sorted where they are a set."""
    return tuple(sources) if algorithm in ORDERED else tuple(sorted(sources))


def steps(algorithm: str, sources: Tasks, target: str) -> list[Step]:
    """The steps of one run; the model of the last one is scored on the target's test set.

    Raises:
        ConfigError: an unknown algorithm, a transfer without sources, a repeated source, or a
            target among its own sources.
    """
    if algorithm not in ALGORITHMS:
        raise ConfigError(f"unknown algorithm {algorithm!r}; known: {', '.join(ALGORITHMS)}")
    if algorithm != "baseline" and not sources:
        raise ConfigError(f"{algorithm} of {target} needs at least one source")
    if target in sources:
        raise ConfigError(f"{target} cannot be a source of itself")
    if len(set(sources)) != len(sources):
        raise ConfigError(f"duplicate source of {target}: {', '.join(sources)}")
    return ALGORITHMS[algorithm](sources, target)
