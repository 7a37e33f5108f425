"""The transfer algorithms: each is a list of steps, and nothing else.

This is the only module that knows about sources and targets as roles. Everything below it sees a
step: tasks to train on, the tasks whose dev score selects the best epoch, starting from where the
step before ended (the first one: from the base model). A new method that is a new order of
trainings is a new function here and no second trainer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tasktransfer.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Step:
    """One training of an algorithm, before model, data and seed are known."""

    train_tasks: tuple[str, ...]
    select_on: tuple[str, ...]


def baseline(sources: tuple[str, ...], target: str) -> tuple[Step, ...]:
    """The target alone (paper, section 3.3): what every transfer is compared with."""
    if sources:
        raise ConfigError(f"the baseline of {target} has no sources, got {', '.join(sources)}")
    return (Step((target,), (target,)),)


def pretrain_finetune(sources: tuple[str, ...], target: str) -> tuple[Step, ...]:
    """Train on the sources, then on the target (paper, section 4, STILTs).

    The first step is selected on the sources' own dev sets; with one source it *is* the source's
    baseline, and the plan trains it once.
    """
    return (Step(sources, sources), Step((target,), (target,)))


def multitask(sources: tuple[str, ...], target: str) -> tuple[Step, ...]:
    """Sources and target together, the best epoch chosen on the target alone (section 4)."""
    return (Step((*sources, target), (target,)),)


def multitask_finetune(sources: tuple[str, ...], target: str) -> tuple[Step, ...]:
    """Multitask first, then the target alone from the multitask model's best epoch (section 4)."""
    return (*multitask(sources, target), Step((target,), (target,)))


Algorithm = Callable[[tuple[str, ...], str], tuple[Step, ...]]

ALGORITHMS: dict[str, Algorithm] = {
    "baseline": baseline,
    "pretrain_finetune": pretrain_finetune,
    "multitask": multitask,
    "multitask_finetune": multitask_finetune,
}

TRANSFER_ALGORITHMS = tuple(name for name in ALGORITHMS if name != "baseline")


def steps(algorithm: str, sources: tuple[str, ...], target: str) -> tuple[Step, ...]:
    """The steps of one run; the model of the last one is scored on the target's test set.

    Sources are a set: their order never changes a step, so that equal trainings are found equal.

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
        raise ConfigError(f"a source of {target} is named twice: {', '.join(sources)}")
    return tuple(
        Step(tuple(sorted(step.train_tasks)), tuple(sorted(step.select_on)))
        for step in ALGORITHMS[algorithm](sources, target)
    )
