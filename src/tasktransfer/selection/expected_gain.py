"""Prediction of a transfer's gain from a selector's value.

The prediction is fitted on finished transfers to other targets, and its error is measured on
held-out targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tasktransfer.stats.draws import Floats

LEVEL = 0.95
FEWEST_TARGETS = 3


@dataclass(frozen=True, slots=True)
class GainPrediction:
    """A linear prediction of gains from a selector's values.

    The gain is ``offset`` + ``slope`` × the value in standard deviations of its target's values.

    Args:
        offset: expected gain at the mean value of a target.
        slope: gain per standard deviation of the value.
        error: root mean squared error on held-out targets, each predicted from the others.
        constant_error: root mean squared error of predicting the mean gain for every value.
        covered: fraction of held-out gains inside their intervals.
        targets: number of targets in the fit.
    """

    offset: float
    slope: float
    error: float
    constant_error: float
    covered: float
    targets: int

    def predict_gains(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Predict gains with 95 % intervals, each of shape (sources,)."""
        gains: Floats = self.offset + self.slope * normalise_values(values)
        reach = _compute_interval_factor(self.targets) * self.error
        return gains, gains - reach, gains + reach


def fit_expected_gain(values: Floats, gains: Floats) -> GainPrediction | None:
    """Fit a line that predicts gains from a selector's values, on finished transfers.

    Args:
        values: a selector's values, shape (targets, sources); NaN if missing.
        gains: gains of the transfers in points, same shape; NaN if there is no pair.

    Returns:
        The fit; None with fewer than three targets that have two sources with values.
    """
    x = np.stack([normalise_values(row) for row in np.where(np.isnan(gains), np.nan, values)])
    known = ~np.isnan(x) & ~np.isnan(gains)
    kept = known.sum(axis=1) > 1
    x, gains, known = x[kept], gains[kept], known[kept]
    targets = len(x)
    if targets < FEWEST_TARGETS:
        return None
    missed, constant, inside = [], [], []
    for held in range(targets):
        others = np.arange(targets) != held
        line = _fit_line(x[others], gains[others], known[others])
        truth = gains[held][known[held]]
        off = truth - line[0] - line[1] * x[held][known[held]]
        spread = _compute_spread(x[others], gains[others], known[others], line)
        missed.append(np.mean(off**2))
        constant.append(np.mean((truth - gains[others][known[others]].mean()) ** 2))
        inside.append(np.mean(np.abs(off) <= _compute_interval_factor(targets - 1) * spread))
    offset, slope = _fit_line(x, gains, known)
    return GainPrediction(
        *(offset, slope, float(np.mean(missed)) ** 0.5, float(np.mean(constant)) ** 0.5),
        *(float(np.mean(inside)), targets),
    )


def normalise_values(values: Floats) -> Floats:
    """Standardise the values of a target to mean 0 and standard deviation 1.

    Neither selectors nor targets have a common unit. If all values are equal, the result is 0.
    """
    there = ~np.isnan(values)
    if not there.any():
        return values
    spread = float(values[there].std())
    centred: Floats = values - values[there].mean()
    return centred / spread if spread > 0 else np.where(there, 0.0, np.nan)


def _fit_line(x: Floats, gains: Floats, known: NDArray[np.bool_]) -> tuple[float, float]:
    """Fit intercept and slope by least squares over all pairs, weighting targets equally."""
    weights = np.where(known, 1 / np.maximum(known.sum(axis=1, keepdims=True), 1), 0.0)
    w, a, b = (part[known] for part in (weights, x, gains))
    mean_a, mean_b = np.average(a, weights=w), np.average(b, weights=w)
    below = float(np.average((a - mean_a) ** 2, weights=w))
    slope = float(np.average((a - mean_a) * (b - mean_b), weights=w)) / below if below > 0 else 0.0
    return float(mean_b - slope * mean_a), slope


def _compute_spread(
    x: Floats,
    gains: Floats,
    known: NDArray[np.bool_],
    line: tuple[float, float],
) -> float:
    off = np.where(known, gains - line[0] - line[1] * np.where(known, x, 0.0), 0.0)
    of_target = (off**2).sum(axis=1) / known.sum(axis=1)
    return float(np.sqrt(of_target.mean()))


def _compute_interval_factor(targets: int) -> float:
    """Return the half width of an interval in standard errors (Student's t distribution)."""
    return float(special.stdtrit(max(1, targets - 1), (1 + LEVEL) / 2))
