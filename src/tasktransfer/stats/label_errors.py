"""Probable label errors from out-of-sample probabilities, by confident learning.

Northcutt, Jiang and Chuang 2021, "Confident learning: estimating uncertainty in dataset labels". A
label's threshold is the mean probability of the label over the instances that have it. An instance
is a probable label error if another label is the most probable one among those that reach their
thresholds. Thresholds by label make the method robust to probabilities that are too low or too high
for some labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

FOLDS = 5


def crossfit_probabilities(
    clusters: Sequence[str],
    labels: int,
    predict: Callable[[Labels, Labels], Floats],
    folds: int = FOLDS,
    seed: int = 0,
) -> Floats:
    """Return the probabilities of each instance from a model of other dialogues.

    Args:
        clusters: dialogue of each instance. All instances of a dialogue are in one fold.
        labels: number of labels.
        predict: function (training instances, instances to predict) → probabilities, (instances to
            predict, labels). Both are positions.
    """
    names, places = np.unique(np.asarray(clusters, str), return_inverse=True)
    fold = (np.random.default_rng(seed).permutation(len(names)) % folds)[places]
    probabilities = np.zeros((len(clusters), labels))
    for part in np.unique(fold):
        here = np.flatnonzero(fold == part)
        probabilities[here] = predict(np.flatnonzero(fold != part), here)
    return probabilities


def find_label_errors(probabilities: Floats, given: Labels) -> Flags:
    """Return whether each label is a probable error, (instances,).

    Args:
        probabilities: out-of-sample probabilities, (instances, labels).
        given: number of each instance's label.
    """
    # A label without instances is never the probable one.
    thresholds = np.full(probabilities.shape[1], np.inf)
    for label in np.unique(given):
        thresholds[label] = probabilities[given == label, label].mean()
    confident = np.where(probabilities >= thresholds, probabilities, -1.0)
    best = confident.argmax(axis=1)
    is_error: Flags = (confident.max(axis=1) > 0) & (best != given)
    return is_error
