"""Controls, with which a transfer is compared in addition to the baseline, as lists of steps.

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

from tasktransfer.core.nodes import Data
from tasktransfer.core.plan import Step
from tasktransfer.core.specs import Selection, Training
from tasktransfer.datasets import get_task
from tasktransfer.designs.transfer.algorithms import Tasks
from tasktransfer.errors import ConfigError, format_quantity
from tasktransfer.tasks.card import Task

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


def _build_step(task: str) -> Step:
    return Step((task,), Selection((task,)))


def _build_self_transfer(sources: Tasks, target: str, settings: StudySettings) -> list[Step]:
    """Return steps that train on the target twice, as a control without new data."""
    return [_build_step(target), _build_step(target)]


def _build_longer_baseline(sources: Tasks, target: str, settings: StudySettings) -> list[Step]:
    """Return a step that trains on the target alone for twice as long.

    The best of all rounds is selected.
    """
    training = settings.training.multiply_budget(LENGTH_FACTOR)
    return [replace(_build_step(target), training=training)]


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
    return [replace(_build_step(source), data=permuted), _build_step(target)]


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
