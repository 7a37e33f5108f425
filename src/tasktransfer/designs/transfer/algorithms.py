"""Transfer algorithms and controls, each defined as a list of steps.

Only this module knows what each algorithm does with sources and target. All other code sees steps:
the tasks to train on, the tasks whose dev score selects the best epoch, and the step to start from.
To add a method that is a new order of training steps, add a function here and its entry in
``ALGORITHMS``. It needs no other trainer.

A gain over the baseline need not come from the source. Each control removes one possible cause of
the gain and keeps the rest:

=================  =======================================  ======================================
control            steps                                    rules out
=================  =======================================  ======================================
self_transfer      [T] → [T]                                a restarted optimiser, more updates
longer_baseline    [T] with twice the budget                more updates
shuffled_source    [S with permuted answers] → [T]          the source's texts, any training at all
=================  =======================================  ======================================

Controls are not algorithms: a study lists them under ``controls``, their runs have a separate table
(``control_runs``), and code that compares, chooses or submits algorithms ignores them. They have at
most one source. The first step of ``self_transfer`` is the target's baseline, which is trained
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tasktransfer.core.nodes import Data, Merge
from tasktransfer.core.plan import From, Step
from tasktransfer.core.specs import Selection, Training
from tasktransfer.datasets import get_task
from tasktransfer.errors import ConfigError, format_quantity
from tasktransfer.tasks.card import Task

Tasks = tuple[str, ...]


def _build_step(train_tasks: Tasks, selecting: Tasks) -> Step:
    return Step(train_tasks, Selection(selecting))


def _build_baseline(sources: Tasks, target: str) -> list[Step]:
    """Return the step that trains on the target alone (paper, section 3.3).

    Every transfer is compared with it.
    """
    if sources:
        raise ConfigError(
            f"{target}: The baseline cannot have sources, but its sources are "
            f"{', '.join(sources)}. Remove the sources."
        )
    return [_build_step((target,), (target,))]


def _build_pretrain_finetune(sources: Tasks, target: str) -> list[Step]:
    """Return steps that train on the sources, then on the target (paper, section 4: STILTs).

    The first step is selected on the sources' own dev sets; with one source it *is* the source's
    baseline, and the plan trains it once.
    """
    return [_build_step(sources, sources), _build_step((target,), (target,))]


def _build_multitask(sources: Tasks, target: str) -> list[Step]:
    """Return the step that trains on sources and target together (paper, section 4).

    The best epoch is selected on the target.
    """
    return [_build_step((*sources, target), (target,))]


def _build_multitask_finetune(sources: Tasks, target: str) -> list[Step]:
    """Return a multitask step, and a step from its best epoch on the target alone (section 4)."""
    return [*_build_multitask(sources, target), _build_step((target,), (target,))]


def _build_sequential(sources: Tasks, target: str) -> list[Step]:
    """Return steps that train on one source after another, then on the target.

    Not in the paper. With one source, it is identical to pretrain_finetune.
    """
    return [_build_step((task,), (task,)) for task in (*sources, target)]


def _build_temperature(sources: Tasks, target: str) -> list[Step]:
    """Return a multitask step that samples tasks by the square root of their sizes.

    Not in the paper.
    """
    return [replace(step, sampler="temperature") for step in _build_multitask(sources, target)]


def _build_random_weights(sources: Tasks, target: str) -> list[Step]:
    """Return a multitask step with random loss weights, a control for weighting methods.

    Not in the paper.
    """
    return [replace(step, sampler="random_weights") for step in _build_multitask(sources, target)]


def _build_exp3(sources: Tasks, target: str) -> list[Step]:
    """Return a step in which Exp3 chooses one source per update (FLAD, Albalak 2023).

    An EXP3 bandit chooses the source. It is rewarded if the gradients of source and target agree.
    Not in the paper.
    """
    return [replace(step, sampler="exp3") for step in _build_multitask(sources, target)]


def _build_ucb1(sources: Tasks, target: str) -> list[Step]:
    """Return a step in which UCB1 chooses one source per update (FLAD). Not in the paper."""
    return [replace(step, sampler="ucb1") for step in _build_multitask(sources, target)]


def _build_average(sources: Tasks, target: str) -> list[Step]:
    """Return steps that average the sources' models (except heads), then train on the target.

    Not in the paper.
    """
    return _build_merged_steps(sources, target, "mean")


def _build_ties(sources: Tasks, target: str) -> list[Step]:
    """Return steps that merge the sources' models (except heads) by TIES, then train on the target.

    Yadav et al. 2023; not in the paper.
    """
    return _build_merged_steps(sources, target, "ties")


def _build_merged_steps(sources: Tasks, target: str, merged: Merge) -> list[Step]:
    """Return the sources' baselines, and a target step that starts from their merged weights."""
    alone = [replace(_build_step((source,), (source,)), start=None) for source in sources]
    starts = tuple(From(step, merged=merged) for step in alone)
    return [*alone, replace(_build_step((target,), (target,)), start=starts)]


Algorithm = Callable[[Tasks, str], list[Step]]

ALGORITHMS: dict[str, Algorithm] = {
    "baseline": _build_baseline,
    "pretrain_finetune": _build_pretrain_finetune,
    "multitask": _build_multitask,
    "multitask_finetune": _build_multitask_finetune,
    "sequential": _build_sequential,
    "temperature": _build_temperature,
    "random_weights": _build_random_weights,
    "exp3": _build_exp3,
    "ucb1": _build_ucb1,
    "average": _build_average,
    "ties": _build_ties,
}

BANDITS = ("exp3", "ucb1")
"""Algorithms that learn the choice of sources during training."""

PAPER_ALGORITHMS = ("baseline", "pretrain_finetune", "multitask", "multitask_finetune")
"""Algorithms that ``all`` means in a config."""

TRANSFER_ALGORITHMS = tuple(name for name in ALGORITHMS if name != "baseline")

STAGE_KINDS = ("baseline", "multitask", "finetune", "control")
"""Kinds of training stages in paths and logs; see ``stage_names.derive_stage_kind``."""

ORDERED = frozenset({"sequential"})
"""Algorithms that depend on the order of the sources; for the others, sources are a set."""


def expand_algorithms(names: Any) -> Any:
    """Return the algorithms of a config, with ``all`` replaced by the paper's algorithms."""
    return list(PAPER_ALGORITHMS) if names == "all" else names


def order_algorithms(names: Tasks) -> Tasks:
    """Return the baseline and the named algorithms, in the order of ``ALGORITHMS``."""
    return tuple(name for name in ALGORITHMS if name in {"baseline", *names})


def order_sources(algorithm: str, sources: Tasks) -> Tasks:
    """Return the sources in the order in which a run's name lists them.

    They are sorted unless the algorithm depends on their order.
    """
    return tuple(sources) if algorithm in ORDERED else tuple(sorted(sources))


def build_steps(algorithm: str, sources: Tasks, target: str) -> list[Step]:
    """Return the steps of one run. The last step's model is evaluated on the test set.

    Raises:
        ConfigError: the algorithm is unknown, a transfer has no source, a source is repeated, or
            the target is among its own sources.
    """
    if algorithm not in ALGORITHMS:
        raise ConfigError(
            f"There is no transfer algorithm {algorithm!r}. Choose one of {', '.join(ALGORITHMS)}."
        )
    if algorithm != "baseline" and not sources:
        raise ConfigError(
            f"{target}: The algorithm {algorithm} needs at least one source. Add a source task."
        )
    if target in sources:
        raise ConfigError(f"{target}: A task cannot be its own source. Choose another source.")
    if len(set(sources)) != len(sources):
        raise ConfigError(
            f"{target}: The list of sources {', '.join(sources)} contains a duplicate. List each "
            "source once."
        )
    return ALGORITHMS[algorithm](sources, target)


# --- controls ---


PERMUTED = "permuted_answers"
"""Recipe of the derived data on which ``shuffled_source`` trains its source (``data.permuted``)."""

BEATS, EXPLAINED, HURTS, CANNOT_TELL, NOT_JUDGED = VERDICTS = (
    "beats all controls",
    "explained by a control",
    "hurts",
    "cannot tell",
    "not judged",
)
"""Outcomes of a comparison of a cell with its controls (``statistics.controls``)."""

LENGTH_FACTOR = 2
"""Multiple of the baseline's epochs or updates for ``longer_baseline``."""


@dataclass(frozen=True, slots=True)
class StudySettings:
    """Data, training settings and seed of the study's other runs on a target."""

    data: Data
    training: Training
    seed: int


def _build_task_step(task: str) -> Step:
    return _build_step((task,), (task,))


def _build_self_transfer(sources: Tasks, target: str, settings: StudySettings) -> list[Step]:
    """Return steps that train on the target twice, as a control without new data."""
    return [_build_task_step(target), _build_task_step(target)]


def _build_longer_baseline(sources: Tasks, target: str, settings: StudySettings) -> list[Step]:
    """Return a step that trains on the target alone for twice as long.

    The best of all rounds is selected.
    """
    training = settings.training.multiply_budget(LENGTH_FACTOR)
    return [replace(_build_task_step(target), training=training)]


def _build_shuffled_source(sources: Tasks, target: str, settings: StudySettings) -> list[Step]:
    """Return steps that train on the source with shuffled labels, then on the target.

    Train and dev answers are permuted, so gold answers affect neither training nor selection. Each
    seed has its own permutation, so results do not depend on a single one. Instances that list
    their candidate answers get another candidate from their own list, so that the answer stays
    possible.
    """
    (source,) = sources
    recipe_settings = {**settings.data.settings, "seed": settings.seed}
    if has_answer_candidates(get_task(settings.data.name, source)):
        recipe_settings["listed"] = True
    permuted = replace(settings.data, recipe=PERMUTED, settings=recipe_settings)
    return [replace(_build_task_step(source), data=permuted), _build_task_step(target)]


Control = Callable[[Tasks, str, StudySettings], list[Step]]

SELF_TRANSFER, LONGER_BASELINE, SHUFFLED_SOURCE = (
    "self_transfer",
    "longer_baseline",
    "shuffled_source",
)

CONTROLS: dict[str, Control] = {
    SELF_TRANSFER: _build_self_transfer,
    LONGER_BASELINE: _build_longer_baseline,
    SHUFFLED_SOURCE: _build_shuffled_source,
}

PAIR_CONTROLS = frozenset({SHUFFLED_SOURCE})
"""Controls that have a source; the others use the target alone."""


def has_answer_candidates(task: Task) -> bool:
    """Return whether the instances of a span task list candidate answers."""
    return task.kind == "span" and bool(task.toolkit and task.toolkit.answer_in)


def build_control_steps(
    control: str, sources: Tasks, target: str, settings: StudySettings
) -> list[Step]:
    """Return the steps of a control's run. The last step's model is evaluated on the test set.

    Raises:
        ConfigError: the control is unknown, or has the wrong number of sources.
    """
    if control not in CONTROLS:
        raise ConfigError(f"There is no control {control!r}. Choose one of {', '.join(CONTROLS)}.")
    expected = int(control in PAIR_CONTROLS)
    if len(sources) != expected:
        sources_text = ", ".join(sources) or "none"
        raise ConfigError(
            f"{control} of {target}: The control must have {format_quantity(expected, 'source')}, "
            f"but its sources are {sources_text}. Change the sources of the control."
        )
    return CONTROLS[control](sources, target, settings)


def list_control_runs(
    controls: Sequence[str], tasks: Sequence[str], pairs: Sequence[tuple[str, str]]
) -> list[tuple[str, Tasks, str]]:
    """Return a tuple (control, sources, target) for each run with a dataset, model and seed.

    Args:
        controls: names in ``CONTROLS``.
        tasks: the targets that have a baseline.
        pairs: source and target of the study's transfers.
    """
    runs: list[tuple[str, Tasks, str]] = []
    for control in controls:
        if control in PAIR_CONTROLS:
            runs += [(control, (source,), target) for source, target in pairs]
        else:
            runs += [(control, (), target) for target in tasks]
    return runs
