"""Metrics of tasks whose answers are ratings: contributions of instances to their sums."""

from __future__ import annotations

import numpy as np

from tasktransfer.metrics.answers import CodedAnswers
from tasktransfer.metrics.labels import Sums
from tasktransfer.tasks.card import MetricSpec, Task
from tasktransfer.tasks.ratings import compute_fraction


def compute_fractions(task: Task, answers: CodedAnswers) -> Sums:
    """Return each rating as a fraction of its scale, NaN if it is not on the scale, shape (n,)."""
    return np.array([compute_fraction(task, text) for text in answers.texts])[answers.codes]


def tally_ratings(
    task: Task, spec: MetricSpec, predictions: CodedAnswers, golds: CodedAnswers
) -> Sums:
    """Return each rating's correctness, 0 to 1, and its count, 1, shape (n, 2).

    For ``accuracy``, a rating is correct if it is in the same half of the scale as the gold rating.
    For ``closeness``, correctness is 1 minus the distance from the gold rating as a fraction of the
    scale. An answer that is not a rating has correctness 0.
    """
    guessed, right = compute_fractions(task, predictions), compute_fractions(task, golds)
    if spec.name == "accuracy":
        each = ((guessed >= 0.5) == (right >= 0.5)).astype(np.float64)
    else:
        each = 1 - np.abs(guessed - right)
    return np.stack([np.where(np.isnan(guessed), 0.0, each), np.ones_like(each)], axis=1)
