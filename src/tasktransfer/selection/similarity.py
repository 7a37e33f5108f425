"""Similarity of the inputs of two tasks, by their words or by a model's embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TARGET_INPUTS, SOURCE_INPUTS = 32, 100
"""Numbers of inputs for retrieval of experts, as in TaskWeb (Kim et al. 2023)."""


def compute_mean_tfidf(texts: Mapping[str, Sequence[str]]) -> dict[str, Floats]:
    """Return the mean TF-IDF vector of each task's inputs; document frequencies are joint."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415  # slow to import

    vectorizer = TfidfVectorizer()
    vectorizer.fit([text for of_task in texts.values() for text in of_task])
    return {
        task: np.asarray(vectorizer.transform(of_task).mean(axis=0)).ravel()
        for task, of_task in texts.items()
    }


def compute_cosine(a: Floats, b: Floats) -> float:
    """Return the cosine similarity of two vectors; 0 if one of them is zero."""
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / length if length > 0 else 0.0


def score_by_retrieval(target: Floats, source: Floats) -> float:
    """Return the mean over target inputs of the largest cosine similarity to a source input.

    Args:
        target, source: embeddings, (inputs, size); the first ``TARGET_INPUTS`` and
            ``SOURCE_INPUTS`` are read.
    """
    t, s = _normalise_rows(target[:TARGET_INPUTS]), _normalise_rows(source[:SOURCE_INPUTS])
    return float((t @ s.T).max(axis=1).mean())


def _normalise_rows(rows: Floats) -> Floats:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    result: Floats = rows / np.where(length > 0, length, 1)
    return result
