"""Fits: what a library fits in one call. A classifier learns a task from features or texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import ConfigError, DataError
from tasktransfer.fits import fast_text, logistic
from tasktransfer.fits.probes import Fitted, Given, fit_probes
from tasktransfer.tasks.card import Instance, Task

Features = npt.NDArray[np.float64]


class Classifier(Protocol):
    """A fitted classifier of one task."""

    def probabilities(self, instances: Sequence[Instance], features: Features | None) -> Features:
        """(instances, labels) probabilities, the labels in the card's order."""
        ...

    def save(self, folder: Path) -> None:
        """Write it into a folder that is there."""
        ...


@dataclass(frozen=True, slots=True)
class Learner:
    """How a classifier is fitted and read back.

    ``fit``: (card, training instances, their features or None, settings, seed) → classifier.
    ``load``: folder → classifier. ``features``: whether it learns from a model's representations;
    otherwise from the texts.
    """

    fit: Callable[[Task, Sequence[Instance], Features | None, Mapping[str, Any], int], Classifier]
    load: Callable[[Path], Classifier]
    features: bool = False


@dataclass(frozen=True, slots=True)
class JointLearner:
    """How all tasks of a fit are fitted and scored at once, on features that are computed once.
    ``features``: as of a ``Learner``; otherwise counts of words."""

    fit: Callable[[Given], Fitted]
    features: bool = False


JOINT_LEARNERS: dict[str, JointLearner] = {
    "probes": JointLearner(fit_probes, features=True),
    "probes_of_words": JointLearner(fit_probes),
}

LEARNERS: dict[str, Learner] = {
    "logistic_texts": Learner(logistic.fit_texts, logistic.load),
    "fasttext": Learner(fast_text.fit, fast_text.load),
    "logistic": Learner(logistic.fit_features, logistic.load, features=True),
}


def learner_named(name: str, more: Mapping[str, Learner]) -> Learner:
    """The learner of a name; ``more`` are those of the design.

    Raises:
        ConfigError: there is none.
    """
    learners = {**LEARNERS, **more}
    if name not in learners:
        raise ConfigError(f"no learner is named {name!r}; there are {', '.join(learners)}")
    return learners[name]


def fitted_on(learner: Learner, folder: Path, card: Task) -> Classifier:
    """The classifier of a folder, which has to know a card's labels and no others.

    Raises:
        DataError: there is none, or it is of other labels; names folder, label and remedy.
    """
    classifier = learner.load(folder)
    names = getattr(classifier, "names", card.labels)
    if names != card.labels:
        odd = sorted({*names} ^ {*card.labels} or {"their order"})[0]
        raise DataError(
            f"{folder}: a classifier of {len(names)} labels, and {card.name} has "
            f"{len(card.labels)}; the first difference is {odd!r}: delete {folder.parent} to fit "
            "it again"
        )
    return classifier


def answers(task: Task, probabilities: Features) -> list[tuple[str, ...]]:
    """The most probable label of each instance."""
    return [(task.labels[index],) for index in probabilities.argmax(axis=1)]


def ranked(task: Task, probabilities: Features) -> list[tuple[str, ...]]:
    """All labels of each instance, the most probable first; ties in the card's order."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    return [tuple(task.labels[index] for index in row) for row in order]
