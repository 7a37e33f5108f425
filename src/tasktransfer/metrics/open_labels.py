"""F1 of sets of labels from an open set: common, predicted and gold labels of each instance."""

from __future__ import annotations

import numpy as np

from tasktransfer.metrics.answers import CodedAnswers
from tasktransfer.metrics.labels import Sums, compute_ratio


def tally_label_sets(guesses: CodedAnswers, right: CodedAnswers) -> Sums:
    """Count the common, predicted and gold labels of each instance, shape (n, 3)."""
    sums = np.zeros((len(right), 3))
    for row in range(len(right)):
        guessed, wanted = set(guesses.get_answers(row)), set(right.get_answers(row))
        sums[row] = len(guessed & wanted), len(guessed), len(wanted)
    return sums


def compute_micro_f1(sums: Sums) -> Sums:
    """Compute F1, 0 to 1, from common, predicted and gold labels summed over instances (..., 3).

    With one label per instance it equals accuracy.
    """
    return compute_ratio(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


def compute_label_set_f1(sums: Sums) -> Sums:
    """Compute each instance's F1 over label sets, shape (n,).

    It is 1 if predicted and gold labels are both empty.
    """
    return np.where(sums[:, 1] + sums[:, 2] == 0, 1.0, compute_micro_f1(sums))
