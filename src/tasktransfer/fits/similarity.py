"""How alike the inputs of two tasks are: by their words, or by what a model makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TARGET_INPUTS, SOURCE_INPUTS = 32, 100
"""Of retrieval of experts, as in TaskWeb (Kim et al. 2023)."""


def mean_tfidf(texts: Mapping[str, Sequence[str]]) -> dict[str, Floats]:
    """Task → mean TF-IDF vector of its inputs; how frequent words are is counted over all tasks."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415  # slow to import

    vectorizer = TfidfVectorizer()
    vectorizer.fit([text for of_task in texts.values() for text in of_task])
    return {
        task: np.asarray(vectorizer.transform(of_task).mean(axis=0)).ravel()
        for task, of_task in texts.items()
    }


def cosine(a: Floats, b: Floats) -> float:
    """0 where one has no length."""
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / length if length > 0 else 0.0


def retrieval_of_experts(target: Floats, source: Floats) -> float:
    """The mean over target inputs of the largest cosine with a source input.

    Args:
        target, source: embeddings, (inputs, size); the first ``TARGET_INPUTS`` and
            ``SOURCE_INPUTS`` are read.
    """
    t, s = _unit(target[:TARGET_INPUTS]), _unit(source[:SOURCE_INPUTS])
    return float((t @ s.T).max(axis=1).mean())


def _unit(rows: Floats) -> Floats:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    result: Floats = rows / np.where(length > 0, length, 1)
    return result
