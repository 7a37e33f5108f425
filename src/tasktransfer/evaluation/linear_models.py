"""TF-IDF and linear classifiers of scikit-learn, with the settings of the references.

A support vector machine gives no probabilities, so the logistic function of its margin is used
instead. This value is above one half if the classifier predicts the positive class.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tasktransfer.errors import DataError

FitClassifier = Callable[[Any, Any, float, int], Any]
"""Function (features, labels, strength, seed) → fitted classifier of scikit-learn; ``strength`` is
scikit-learn's ``C``, the inverse of the regularisation."""


def build_vectorizer(*, sublinear: bool = True) -> Any:
    """Build a TF-IDF vectorizer of whole words, by default that of the references.

    Args:
        sublinear: whether a count c is replaced by 1 + ln c.

    Raises:
        DataError: scikit-learn is not installed.
    """
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        raise DataError(
            "references: The package scikit-learn is not installed. Install the package with "
            "`pip install 'tasktransfer[reference]'`."
        ) from error
    return TfidfVectorizer(sublinear_tf=sublinear, token_pattern=r"(?u)\b\w+\b")


def fit_logistic_regression(features: Any, labels: Any, strength: float, seed: int) -> Any:
    """Fit a logistic regression with ``C=strength``."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=strength, tol=1e-3, max_iter=1000, random_state=seed)
    with warnings.catch_warnings():
        # Labels with one or two instances each are rare labels, not numbers.
        warnings.filterwarnings("ignore", message="The number of unique classes is greater")
        return model.fit(features, labels)


def fit_svm(features: Any, labels: Any, strength: float, seed: int) -> Any:
    """Fit a one-vs-rest linear support vector machine with ``C=strength``."""
    from sklearn.svm import LinearSVC

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The number of unique classes is greater")
        return LinearSVC(C=strength, random_state=seed).fit(features, labels)


def estimate_probabilities(
    features: Any,
    right: Any,
    others: Any,
    seed: int,
    strength: float = 1.0,
    fit: FitClassifier = fit_logistic_regression,
) -> Any:
    """Estimate the probability that each row of ``others`` is correct, (rows,).

    It is constant if all training rows have the same label. ``strength`` is scikit-learn's ``C``.
    """
    if len(set(right)) < 2:
        return np.full(others.shape[0], float(right[0]))
    model = fit(features, right, strength, seed)
    if not hasattr(model, "predict_proba"):
        from scipy.special import expit

        return expit(model.decision_function(others))
    return model.predict_proba(others)[:, 1]
