"""Fits: classifiers that a library fits to a task in one call, from features or texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import ConfigError, DataError
from tasktransfer.fits import fast_text, logistic
from tasktransfer.fits.probes import ProbeInputs, ProbeResults, fit_probes
from tasktransfer.tasks.card import Instance, Task

Features = npt.NDArray[np.float64]


class Classifier(Protocol):
    """A fitted classifier of one task."""

    def predict_probabilities(
        self, instances: Sequence[Instance], features: Features | None
    ) -> Features:
        """Predict label probabilities, (instances, labels), with labels in the card's order."""
        ...

    def save(self, folder: Path) -> None:
        """Save the classifier in an existing folder."""
        ...


@dataclass(frozen=True, slots=True)
class Learner:
    """The functions that fit and load a classifier.

    Attributes:
        fit: function (card, training instances, their features or None, settings, seed) →
            classifier.
        load: function folder → classifier.
        features: whether the classifier is fitted to a model's representations instead of texts.
    """

    fit: Callable[[Task, Sequence[Instance], Features | None, Mapping[str, Any], int], Classifier]
    load: Callable[[Path], Classifier]
    features: bool = False


@dataclass(frozen=True, slots=True)
class JointLearner:
    """A learner that fits and scores all tasks of a fit together, on features computed once.

    Attributes:
        fit: function that fits and scores all tasks.
        features: whether it is fitted to a model's representations instead of word counts.
    """

    fit: Callable[[ProbeInputs], ProbeResults]
    features: bool = False


JOINT_LEARNERS: dict[str, JointLearner] = {
    "probes": JointLearner(fit_probes, features=True),
    "probes_of_words": JointLearner(fit_probes),
}

LEARNERS: dict[str, Learner] = {
    "logistic_texts": Learner(logistic.fit_text_classifier, logistic.load_logistic),
    "fasttext": Learner(fast_text.fit_fasttext, fast_text.load_fasttext),
    "logistic": Learner(logistic.fit_feature_classifier, logistic.load_logistic, features=True),
}


def get_learner(name: str, more: Mapping[str, Learner]) -> Learner:
    """Return the learner that is registered under a name.

    Args:
        more: learners of the design.

    Raises:
        ConfigError: there is no learner with this name.
    """
    learners = {**LEARNERS, **more}
    if name not in learners:
        raise ConfigError(f"There is no learner {name!r}. Choose one of {', '.join(learners)}.")
    return learners[name]


def load_classifier(learner: Learner, folder: Path, card: Task) -> Classifier:
    """Load the classifier saved in a folder. Its labels must be the card's.

    Raises:
        DataError: the classifier is missing or has other labels. The message names the folder and
            the first label that differs.
    """
    classifier = learner.load(folder)
    names = getattr(classifier, "names", card.labels)
    if names != card.labels:
        different = sorted({*names} ^ {*card.labels})
        difference = f"{different[0]!r} is in one of them only" if different else "in another order"
        raise DataError(
            f"{folder}: The classifier's {len(names)} labels differ from the {len(card.labels)} "
            f"labels of the task {card.name} ({difference}). Delete {folder.parent} to fit the "
            "classifier again."
        )
    return classifier


def select_most_probable_labels(task: Task, probabilities: Features) -> list[tuple[str, ...]]:
    """Return the most probable label of each instance."""
    return [(task.labels[index],) for index in probabilities.argmax(axis=1)]


def rank_labels(task: Task, probabilities: Features) -> list[tuple[str, ...]]:
    """Rank each instance's labels by decreasing probability, with ties in the card's order."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    return [tuple(task.labels[index] for index in row) for row in order]
