"""F1 of sets of labels that no card lists: hits, guesses and wanted labels of each instance."""

from __future__ import annotations

import numpy as np

from tasktransfer.metrics.answers import Coded
from tasktransfer.metrics.labels import Sums, ratio


def tally(guesses: Coded, right: Coded) -> Sums:
    """Labels in common, guessed and right of each instance, (n, 3)."""
    sums = np.zeros((len(right), 3))
    for row in range(len(right)):
        guessed, wanted = set(guesses.of(row)), set(right.of(row))
        sums[row] = len(guessed & wanted), len(guessed), len(wanted)
    return sums


def micro_f1(sums: Sums) -> Sums:
    """Labels in common, guessed and right, summed over instances (..., 3), to F1, 0 to 1; of one
    label each it is accuracy."""
    return ratio(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


def set_f1(sums: Sums) -> Sums:
    """The F1 of single instances; 1 where nothing is wanted and nothing guessed."""
    return np.where(sums[:, 1] + sums[:, 2] == 0, 1.0, micro_f1(sums))
