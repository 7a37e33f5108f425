"""Names of simple predictors that a fine-tuned model's score should exceed.

Each is the ``learner`` of a ``core.nodes.Fit`` that predicts the test splits of its tasks. The
predictors are in ``evaluation.reference`` and ``evaluation.embedded``. ``contrastive_logistic``
fine-tunes an encoder, so it is a method to compare and not a score to exceed
(docs/decisions/0045).
"""

from __future__ import annotations

from typing import Any

MOST_FREQUENT, TFIDF = "most_frequent", "tfidf_logistic"
FROZEN, NEAREST = "frozen_logistic", "nearest_neighbour"
CONTRASTIVE = "contrastive_logistic"

REFERENCES = {
    MOST_FREQUENT: "most frequent answer",
    TFIDF: "TF-IDF, logistic regression",
    FROZEN: "frozen embeddings, logistic regression",
    NEAREST: "frozen embeddings, nearest neighbour",
    CONTRASTIVE: "contrastive fine-tuning, logistic regression",
}
"""Learner → label."""

LEARNED, NOT_BETTER, COLLAPSED = "learned", "not better", "collapsed"
"""States of a baseline's runs and of their cell.

- ``collapsed``: gives one answer to at least 99 % of the test split, an empty set of labels
  included. A cell has collapsed if at least half of its runs have.
- ``not better``: the score (of a cell, the mean) is at most that of the best reference.
- ``learned``: the score is above all references.
"""

OF_A_MODEL = (FROZEN, NEAREST, CONTRASTIVE)
"""References that read a model's embeddings, so that each model of a study has its own."""

REGULARISATION = 10.0
"""Scikit-learn's ``C`` of the logistic regression on frozen embeddings.

It was chosen once by cross-validation on training instances alone, from 1 to 100: of ten tasks of
FETA (500 instances each) and of the emotions of EmpatheticDialogues (300 and 1,000 instances), with
MiniLM. It is a setting of the fit, so another value gives another digest.
"""

CONTRASTIVE_SETTINGS: dict[str, Any] = {
    "updates": 40,
    "batch_size": 32,
    "learning_rate": 1e-4,
    "temperature": 0.1,
}
"""Settings of the contrastive fine-tuning, part of the identity of its fits."""

MODEL, SCORING, STRENGTH = "model", "scoring", "C"
LIMIT_TRAIN, LIMIT_DEV, LIMIT_TEST = "limit_train", "limit_dev", "limit_test"
SPLIT, TUNING = "split", "tuning"
"""Keys of a fit's settings. ``model`` is the model's identity; the others are left out at their
default. ``split`` is the predicted split, by default ``test``. ``tuning`` has the settings of the
contrastive fine-tuning."""
