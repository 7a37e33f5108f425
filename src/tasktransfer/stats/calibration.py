"""Calibration of probabilities by temperature (Guo et al. 2017), and its measures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

ACCURACY = 0.9
"""Accuracy that a suggested threshold aims at."""
BINS = 10
FOLDS = 5
LEAST, MOST = 1e-4, 1e2
"""Range of temperatures."""


def compute_confidence(logits: Floats, temperature: float) -> Floats:
    """Return the probability of each instance's most probable label, (instances,)."""
    scaled = (logits - logits.max(axis=1, keepdims=True)) / temperature
    confidence: Floats = 1 / np.exp(scaled).sum(axis=1)
    return confidence


def fit_temperature(logits: Floats, golds: Labels) -> float:
    """Find the temperature with the lowest log loss, between ``LEAST`` and ``MOST``.

    Without an error, the log loss has no minimum. Then the gold label's target is (n + 1) / (n + 2)
    for n instances, and the other labels share the rest (Platt 1999).

    Args:
        logits: (instances, labels).
        golds: index of each gold label, -1 if the model does not know it; these are left out.
    """
    from scipy.optimize import minimize_scalar  # noqa: PLC0415  # slow to import

    known = golds >= 0
    scores, right = logits[known], golds[known]
    if not len(right):
        return 1.0
    is_perfect = bool((scores.argmax(axis=1) == right).all())
    rest = 1 / (len(right) + 2) if is_perfect else 0.0
    targets = np.full(scores.shape, rest / (scores.shape[1] - 1))
    targets[np.arange(len(right)), right] = 1 - rest

    def compute_loss(log_temperature: float) -> float:
        scaled = scores / np.exp(log_temperature)
        scaled -= scaled.max(axis=1, keepdims=True)
        logs = scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True))
        return -float((targets * logs).sum(axis=1).mean())

    found = minimize_scalar(compute_loss, bounds=(np.log(LEAST), np.log(MOST)), method="bounded")
    return float(np.exp(found.x))


def compute_calibration_error(logits: Floats, golds: Labels, temperature: float) -> float:
    """Compute the expected calibration error in points, with bins of equal width.

    It is the mean difference between confidence and accuracy over bins of the confidence, weighted
    by their instances.
    """
    return _compute_error(compute_confidence(logits, temperature), logits, golds)


def _compute_error(confidence: Floats, logits: Floats, golds: Labels) -> float:
    is_right = logits.argmax(axis=1) == golds
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=confidence - is_right, minlength=BINS)
    return 100 * float(np.abs(gaps).sum()) / max(1, len(golds))


def compute_crossfitted_error(
    logits: Floats, golds: Labels, clusters: Sequence[str], seed: int = 0
) -> float:
    """Compute the calibration error of ``crossfit_confidence``."""
    return _compute_error(crossfit_confidence(logits, golds, clusters, seed), logits, golds)


def crossfit_confidence(
    logits: Floats, golds: Labels, clusters: Sequence[str], seed: int = 0
) -> Floats:
    """Compute confidences with temperatures that are fitted on other dialogues.

    Dialogues are split into ``FOLDS`` parts. Each part is scaled by the temperature of the others.

    Args:
        clusters: dialogue of each instance.
    """
    names, places = np.unique(np.asarray(clusters, str), return_inverse=True)
    folds = np.random.default_rng(seed).permutation(len(names)) % FOLDS
    fold = folds[places]
    confidence = np.empty(len(golds))
    for part in np.unique(fold):
        here = fold == part
        temperature = fit_temperature(logits[~here], golds[~here])
        confidence[here] = compute_confidence(logits[here], temperature)
    return confidence


def compute_reliability(confidence: Floats, is_right: Flags) -> list[dict[str, float]]:
    """Compute mean confidence and accuracy in percent for each non-empty bin.

    The bins are the same as for the calibration error.
    """
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    return [
        {
            "from": number / BINS,
            "to": (number + 1) / BINS,
            "instances": int((bins == number).sum()),
            "confidence": round(100 * float(confidence[bins == number].mean()), 1),
            "accuracy": round(100 * float(is_right[bins == number].mean()), 1),
        }
        for number in np.unique(bins)
    ]


def suggest_threshold(
    confidence: Floats, is_right: Flags, accuracy: float = ACCURACY
) -> float | None:
    """Suggest the probability below which a person should check a label, or return None.

    It keeps the most instances among the thresholds with an accuracy of at least ``accuracy``. The
    accuracy of n kept instances with r right labels is estimated by (r + 1) / (n + 2). So a few
    right labels are not enough: an accuracy of 90 % needs 8 kept instances without an error.
    """
    levels, starts = np.unique(-confidence, return_inverse=True)
    kept = np.cumsum(np.bincount(starts, minlength=len(levels)))
    right = np.cumsum(np.bincount(starts, weights=is_right, minlength=len(levels)))
    good = np.flatnonzero((right + 1) / (kept + 2) >= accuracy)
    return float(-levels[good[-1]]) if len(good) else None


def compute_coverage(
    confidence: Floats, is_right: Flags, thresholds: Sequence[float]
) -> list[dict[str, float | None]]:
    """Compute coverage and accuracy in percent for minimum probabilities.

    Coverage is the fraction of instances whose best label is at least as probable. The accuracy of
    no instance is None.
    """
    rows: list[dict[str, float | None]] = []
    for least in thresholds:
        kept = confidence >= least
        accuracy = round(100 * float(is_right[kept].mean()), 1) if kept.any() else None
        coverage = round(100 * float(kept.mean()), 1)
        rows.append({"min_probability": least, "coverage": coverage, "accuracy": accuracy})
    return rows
