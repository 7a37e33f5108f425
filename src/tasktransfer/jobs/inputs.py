"""What a job reads of other nodes, checked against their records before it is used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tasktransfer.core.nodes import Data, Fit, Start
from tasktransfer.data.cache import MANIFEST
from tasktransfer.fits import Classifier, Learner, fitted_on
from tasktransfer.results.artefacts import checked
from tasktransfer.results.rounds import checked_round
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Task

if TYPE_CHECKING:  # imports torch
    from tasktransfer.training.hardware import Hardware


def hardware(
    study: Study, threads: int = 1, precision: Literal["float32"] | None = None
) -> Hardware:
    """How models are run, as the study's trainings are, unless a precision is asked for."""
    from tasktransfer.training.hardware import Hardware  # noqa: PLC0415  # imports torch

    training = study.config.training
    return Hardware(precision or training.precision, training.deterministic, threads)


def weights(study: Study, start: Start) -> str:
    """The folder of the round of a stage that a node starts from.

    Raises:
        ModelError: the round was not kept.
        RecordError: it is not the one that the stage has left.
    """
    assert start.stage is not None
    return checked_round(study.start(start), start.stage.digest)


def cache(study: Study, data: Data) -> Path:
    """The folder of prepared instances; of derived data its manifest is checked, which has the
    checksums of the tables (``data.cache``).

    Raises:
        RecordError: it is not what the recipe has left.
    """
    if data.recipe:
        checked(Path(study.folder(data)), data.digest, [MANIFEST])
    return Path(study.cache(data))


def classifier(
    study: Study, fit: Fit, task: Task, learner: Learner, fitted: str | None = None
) -> Classifier:
    """The classifier that a fit has left of a task.

    Args:
        fitted: the task that it was fitted on, of the same labels; None: the task itself.

    Raises:
        RecordError: it is not the one that the fit has left.
        DataError: there is none, or it is of other labels.
    """
    folder, name = Path(study.folder(fit)), fitted or task.name
    checked(folder, fit.digest, [name])
    return fitted_on(learner, folder / name, task)
