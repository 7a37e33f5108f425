"""Inputs of a job from other nodes, checked against their records before use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tasktransfer.core.nodes import Data, Fit, Start
from tasktransfer.data.cache import MANIFEST
from tasktransfer.fits import Classifier, Learner, load_classifier
from tasktransfer.results.artefacts import check_artefacts
from tasktransfer.results.rounds import check_round_folder
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Task

if TYPE_CHECKING:  # imports torch
    from tasktransfer.training.hardware import Hardware


def get_hardware(
    study: Study, threads: int = 1, precision: Literal["float32"] | None = None
) -> Hardware:
    """Return the hardware settings of the study's trainings, optionally with another precision."""
    from tasktransfer.training.hardware import Hardware  # noqa: PLC0415  # imports torch

    training = study.config.training
    return Hardware(precision or training.precision, training.deterministic, threads)


def get_checkpoint(study: Study, start: Start) -> str:
    """Return the checkpoint folder from which a stage starts.

    Raises:
        ModelError: the round was not kept.
        RecordError: the checkpoint differs from the one that the stage has recorded.
    """
    assert start.stage is not None
    return check_round_folder(study.get_start_folder(start), start.stage.digest)


def get_cache(study: Study, data: Data) -> Path:
    """Return the folder of prepared instances of some data.

    For derived data this checks the manifest, which has the tables' checksums (``data.cache``).

    Raises:
        RecordError: the manifest differs from the one that the recipe has recorded.
    """
    if data.recipe:
        check_artefacts(Path(study.get_node_folder(data)), data.digest, [MANIFEST])
    return Path(study.get_cache_folder(data))


def load_fit_classifier(
    study: Study, fit: Fit, task: Task, learner: Learner, fitted: str | None = None
) -> Classifier:
    """Load a fit's classifier for a task.

    Args:
        fitted: task with the same labels on which the classifier was fitted; None for ``task``.

    Raises:
        RecordError: the classifier differs from the one that the fit has recorded.
        DataError: the classifier does not exist, or has other labels.
    """
    folder, name = Path(study.get_node_folder(fit)), fitted or task.name
    check_artefacts(folder, fit.digest, [name])
    return load_classifier(learner, folder / name, task)
