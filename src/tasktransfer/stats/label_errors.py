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
    given: Labels | None = None,
) -> Floats:
    """Compute each instance's label probabilities by a model of other dialogues.

    Args:
        clusters: dialogue of each instance. All instances of a dialogue are in one fold.
        labels: number of labels.
        predict: function (training instances, instances to predict) → probabilities, (instances to
            predict, labels). Both are positions.
        given: number of each instance's label, so that no fold has all dialogues of a label that
            several dialogues have. None if folds are sampled without regard to labels.
    """
    names, places = np.unique(np.asarray(clusters, str), return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(names))
    fold = (order % folds)[places]
    if given is not None and not _has_other_folds(fold, places, given):
        fold = _spread_labels(order, places, given, folds)[places]
    probabilities = np.zeros((len(clusters), labels))
    for part in np.unique(fold):
        here = np.flatnonzero(fold == part)
        probabilities[here] = predict(np.flatnonzero(fold != part), here)
    return probabilities


def _has_other_folds(fold: Labels, places: Labels, given: Labels) -> bool:
    """Return whether each label with several dialogues is in several folds."""
    return all(
        len(np.unique(fold[given == label])) > 1 or len(np.unique(places[given == label])) == 1
        for label in np.unique(given)
    )


def _spread_labels(order: Labels, places: Labels, given: Labels, folds: int) -> Labels:
    """Assign dialogues to folds, such that each label is spread over the folds.

    The label of a dialogue with several labels is the one that the fewest instances have.
    """
    counts = np.bincount(given)
    rarest = np.full(len(order), -1)
    for instance in np.argsort(-counts[given], kind="stable"):  # the rarest label last
        rarest[places[instance]] = given[instance]
    fold = np.empty(len(order), np.int64)
    fold[np.lexsort((order, rarest))] = np.arange(len(order)) % folds
    return fold


def find_label_errors(probabilities: Floats, given: Labels) -> Flags:
    """Find the labels that are probably wrong, as a mask (instances,).

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
