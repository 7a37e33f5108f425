"""Names of simple predictors that a fine-tuned model's score should exceed.

Each is the ``learner`` of a ``core.nodes.Fit`` that predicts the test splits of its tasks. The
predictors are in ``evaluation.reference`` and ``evaluation.embedded``.
"""

from __future__ import annotations

MOST_FREQUENT, TFIDF = "most_frequent", "tfidf_logistic"
FROZEN, NEAREST = "frozen_logistic", "nearest_neighbour"

REFERENCES = {
    MOST_FREQUENT: "most frequent answer",
    TFIDF: "TF-IDF, logistic regression",
    FROZEN: "frozen embeddings, logistic regression",
    NEAREST: "frozen embeddings, nearest neighbour",
}
"""Learner → label."""

LEARNED, NOT_BETTER, COLLAPSED = "learned", "not better", "collapsed"
"""States of a baseline's runs and of their cell.

- ``collapsed``: gives one answer to at least 99 % of the test split, an empty set of labels
  included. A cell has collapsed if at least half of its runs have.
- ``not better``: the score (of a cell, the mean) is at most that of the best reference.
- ``learned``: the score is above all references.
"""

OF_A_MODEL = (FROZEN, NEAREST)
"""References that read a model's embeddings, so that each model of a study has its own."""

REGULARISATION = 10.0
"""Scikit-learn's ``C`` of the logistic regression on frozen embeddings.

It was chosen once by cross-validation on training instances alone, from 1 to 100: of ten tasks of
FETA (500 instances each) and of the emotions of EmpatheticDialogues (300 and 1,000 instances), with
MiniLM. It is a setting of the fit, so another value gives another digest.
"""

MODEL, SCORING, STRENGTH = "model", "scoring", "C"
LIMIT_TRAIN, LIMIT_DEV, LIMIT_TEST = "limit_train", "limit_dev", "limit_test"
SPLIT = "split"
"""Keys of a fit's settings. ``model`` is the model's identity; the others are left out at their
default. ``split`` is the predicted split, by default ``test``."""


def can_predict(reference: str, kind: str) -> bool:
    """Return whether a reference predicts tasks of a kind (``tasks.card.Kind``).

    Embeddings are not used for spans: every phrase of a context would have to be embedded.
    """
    return not (reference in OF_A_MODEL and kind == "span")
