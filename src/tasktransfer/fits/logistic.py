"""Logistic regression by scikit-learn, on a model's representations or on word counts.

It is multinomial, with an L2 penalty and C = 1 by default. A class that does not occur in the
training split has probability 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import DataError
from tasktransfer.tasks.card import Instance, Task

Features = npt.NDArray[np.float64]

SUPPORTED_KINDS = ("utterance_classification", "dialogue_classification")

WEIGHTS, SETTINGS = "classifier.safetensors", "classifier.json"


@dataclass(frozen=True, slots=True)
class Logistic:
    """A fitted logistic regression.

    Attributes:
        weights: weights, (features + 1, labels), with the intercepts last; with two classes only
            one column is fitted.
        query: the card's template of the query, which is read in addition to the context.
        vocabulary: word → column for word counts; None if the classifier reads features.
    """

    weights: Features
    classes: tuple[int, ...]
    labels: int
    card: str
    query: str
    vocabulary: Mapping[str, int] | None = None

    def predict_probabilities(
        self, instances: Sequence[Instance], features: Features | None
    ) -> Features:
        """Predict label probabilities, (instances, labels), with labels in the card's order."""
        if self.vocabulary is not None:
            from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415  # Tables do not need it.

            counter = CountVectorizer(vocabulary=dict(self.vocabulary))
            matrix = counter.transform(_join_texts(self.query, instances))
        else:
            matrix = _require_features(features)
        scores = np.asarray(matrix @ self.weights[:-1]) + self.weights[-1]
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        probabilities = np.zeros((len(instances), self.labels))
        probabilities[:, list(self.classes)] = scores / scores.sum(axis=1, keepdims=True)
        return probabilities

    def save(self, folder: Path) -> None:
        """Save the classifier in an existing folder."""
        from safetensors.numpy import save_file  # noqa: PLC0415  # Tables do not need it.

        save_file({"weights": self.weights}, folder / WEIGHTS)
        content = {
            "classes": list(self.classes),
            "labels": self.labels,
            "card": self.card,
            "query": self.query,
            "vocabulary": self.vocabulary,
        }
        (folder / SETTINGS).write_text(json.dumps(content), encoding="utf-8")


def load_logistic(folder: Path) -> Logistic:
    """Load a classifier that ``Logistic.save`` wrote into a folder."""
    content = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    from safetensors.numpy import load_file  # noqa: PLC0415  # Tables do not need it.

    weights = load_file(folder / WEIGHTS)["weights"]
    return Logistic(
        weights,
        tuple(content["classes"]),
        content["labels"],
        content["card"],
        content["query"],
        content["vocabulary"],
    )


def fit_text_classifier(
    card: Task,
    instances: Sequence[Instance],
    features: Features | None,
    settings: Mapping[str, Any],
    seed: int,
) -> Logistic:
    """Fit a logistic regression on word counts of query and context."""
    _check_task(card, instances)
    from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415  # Tables do not need it.

    counter = CountVectorizer(min_df=settings.get("min_count", 1))
    matrix = counter.fit_transform(_join_texts(card.query, instances))
    vocabulary = {str(word): int(column) for word, column in counter.vocabulary_.items()}
    return _fit_logistic(card, matrix, instances, settings, seed, vocabulary)


def fit_feature_classifier(
    card: Task,
    instances: Sequence[Instance],
    features: Features | None,
    settings: Mapping[str, Any],
    seed: int,
) -> Logistic:
    """Fit a logistic regression on a model's representations, (instances, hidden size)."""
    _check_task(card, instances)
    return _fit_logistic(card, _require_features(features), instances, settings, seed, None)


def _fit_logistic(
    card: Task,
    matrix: Any,
    instances: Sequence[Instance],
    settings: Mapping[str, Any],
    seed: int,
    vocabulary: Mapping[str, int] | None,
) -> Logistic:
    gold = np.array([card.labels.index(instance.target[0]) for instance in instances])
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  # Tables do not need it.

    model = LogisticRegression(
        C=settings.get("C", 1.0), max_iter=settings.get("max_iter", 250), random_state=seed
    )
    model.fit(matrix, gold)
    coefficients = np.vstack([model.coef_.T, model.intercept_])
    if coefficients.shape[1] == 1:
        coefficients = np.hstack([np.zeros_like(coefficients), coefficients])
    classes = tuple(int(index) for index in model.classes_)
    return Logistic(coefficients, classes, len(card.labels), card.name, card.query, vocabulary)


def _check_task(card: Task, instances: Sequence[Instance]) -> None:
    if card.kind not in SUPPORTED_KINDS:
        raise DataError(
            f"{card.name}: The kind of the task is {card.kind}, but logistic regression needs a "
            f"task of kind {' or '.join(SUPPORTED_KINDS)}. Choose another task."
        )
    if len({instance.target for instance in instances}) < 2:
        raise DataError(
            f"{card.name}: All training instances have the same label. Provide instances with "
            "several labels."
        )


def _require_features(features: Features | None) -> Features:
    if features is None:
        raise DataError(
            "The classifier needs a model's representations, but the fit specifies no model. "
            "Choose a learner that reads texts, or add a model."
        )
    return features


def _join_texts(query: str, instances: Sequence[Instance]) -> list[str]:
    """Return one text per instance: the formatted query, a space and the context."""
    return [f"{query.format_map(instance.query)} {instance.context}" for instance in instances]
