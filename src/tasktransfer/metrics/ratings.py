"""Metrics of tasks that are answered with a rating: what each instance adds to their sums."""

from __future__ import annotations

import numpy as np

from tasktransfer.metrics.answers import Coded
from tasktransfer.metrics.labels import Sums
from tasktransfer.tasks.card import MetricSpec, Task
from tasktransfer.tasks.ratings import share_of


def shares(task: Task, answers: Coded) -> Sums:
    """Each instance's rating as a share of the scale, (n,); NaN for what is no number on it."""
    return np.array([share_of(task, text) for text in answers.texts])[answers.codes]


def tally(task: Task, spec: MetricSpec, predictions: Coded, golds: Coded) -> Sums:
    """(n, 2): how right each rating is, 0 to 1, and 1.

    ``accuracy``: whether it is nearer to the same end of the scale as the right one. ``closeness``:
    1 less the distance to the right one, as a share of the scale. No number is wrong altogether.
    """
    guessed, right = shares(task, predictions), shares(task, golds)
    if spec.name == "accuracy":
        each = ((guessed >= 0.5) == (right >= 0.5)).astype(np.float64)
    else:
        each = 1 - np.abs(guessed - right)
    return np.stack([np.where(np.isnan(guessed), 0.0, each), np.ones_like(each)], axis=1)
