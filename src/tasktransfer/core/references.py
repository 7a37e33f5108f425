"""Methods that a study compares on a target, and the settings of the simple methods (references).

A fine-tuned model's score should exceed those of the references. Each reference is the ``learner``
of a ``core.nodes.Fit`` that predicts the test splits of its tasks. The predictors are in
``evaluation.reference`` and ``evaluation.embedding_references``. ``contrastive_logistic``
fine-tunes an encoder, so it is a method to compare and not a score to exceed (docs/decisions/0045).
"""

from __future__ import annotations

from typing import Any

from tasktransfer.core.specs import ModelSpec

MOST_FREQUENT, TFIDF, SVM = "most_frequent", "tfidf_logistic", "tfidf_svm"
FROZEN, NEAREST = "frozen_logistic", "nearest_neighbour"
CONTRASTIVE = "contrastive_logistic"

REFERENCES = {
    MOST_FREQUENT: "most frequent answer",
    TFIDF: "TF-IDF with logistic regression",
    SVM: "TF-IDF with a linear support vector machine",
    FROZEN: "frozen embeddings with logistic regression",
    NEAREST: "frozen embeddings with nearest neighbour",
    CONTRASTIVE: "contrastive fine-tuning with logistic regression",
}
"""Learner → label."""

COMPUTED_LABELS = {
    MOST_FREQUENT: REFERENCES[MOST_FREQUENT],
    "by_frequency": "answers by frequency",
    TFIDF: REFERENCES[TFIDF],
}
"""Labels of the references that `data reference` computes."""

LEARNED, NOT_BETTER, COLLAPSED = "learned", "not better", "collapsed"
"""States of a baseline's runs and of their cell.

- ``collapsed``: gives one answer to at least 99 % of the test split, an empty set of labels
  included. A cell has collapsed if at least half of its runs have.
- ``not better``: the score (of a cell, the mean) is at most that of the best reference.
- ``learned``: the score is above all references.
"""
STATES = {
    LEARNED: "has learned",
    NOT_BETTER: "has not learned",
    COLLAPSED: "has not learned (collapsed)",
}
"""State → words of a table, which follow “the baseline”."""

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


FINE_TUNING, ADAPTER, TRANSFER, PROMPTED = "fine_tuning", "adapter", "transfer", "prompted"

METHODS = {
    **REFERENCES,
    FINE_TUNING: "fine-tuning",
    ADAPTER: "fine-tuning of an adapter",
    TRANSFER: "transfer from the source that is best on dev",
    PROMPTED: "prompted model",
}
"""Method → label, in the order of complexity.

A constant and models of word counts need no language model. Two references need one forward pass
per dialogue, and nearest neighbours also keep all training embeddings. Contrastive fine-tuning
trains the model for few updates and without a head. Fine-tuning trains it with a head, an adapter
adds settings and parts to it, and transfer trains it several times. A prompted model is usually
many times larger, which makes each prediction expensive.
"""


def get_training_method(model: ModelSpec) -> str:
    """Return ``ADAPTER`` if a model's training runs train an adapter, otherwise ``FINE_TUNING``."""
    is_adapted = model.adapter is not None or model.adapter_reduction is not None
    return ADAPTER if is_adapted else FINE_TUNING


def format_method_label(method: str) -> str:
    """Return a method's label for use in a sentence."""
    return METHODS[method]
