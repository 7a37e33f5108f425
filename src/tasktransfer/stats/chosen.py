"""What the best of several is worth: chosen on some numbers, judged by others.

A maximum of noisy means lies above every true mean: with nine sources, five seeds and no effect at
all it is 0.69 of the standard deviation of one run. A value is honest if what it is measured on had
no part in the choice. The baseline, a delta of 0, is a candidate everywhere.

Held-out values of two seeds share the seeds that chose, and so are positively correlated (0.13 with
nine sources and five seeds): Student's t over seeds would hold the truth in 90 of 100 studies only.
So the width of their interval is that of studies of noise alone, in which 95 % of the held-out
means lie. They are made in two ways, and the narrower is taken:

- the deltas of a target and seed are multiplied by a random sign, all sources together since they
  share their baseline. Exact without effect, if noise is symmetric; effects make it wider
- normal noise with the covariance that the sources' deltas have over seeds, widened as Student's t
  is. Effects leave it as it is; with few seeds it is too wide

Noise of a source that all its targets share makes both too narrow: they hold 0 in 92 of 100 studies
if half a run's deviation is shared.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from tasktransfer.stats.resampling import Floats

STUDIES = 1000
"""Of noise alone, in each of the two ways."""

LEVEL = 0.95


def chosen_by(means: Floats, values: Floats) -> Floats:
    """The values of the sources whose mean is best, 0 where none is above 0.

    Args:
        means: (..., sources, targets), NaN where there is no pair.
        values: (..., sources, targets, seeds).

    Returns:
        (..., targets, seeds)
    """
    ranked = np.where(np.isnan(means), -np.inf, means)
    which = ranked.argmax(axis=-2)[..., None, :]
    best = np.take_along_axis(ranked, which, axis=-2)[..., 0, :]
    taken = np.take_along_axis(values, which[..., None], axis=-3)[..., 0, :, :]
    result: Floats = np.where(best[..., None] > 0, taken, 0.0)
    return result


def heldout(values: Floats) -> Floats:
    """Deltas of the sources that the other seeds choose.

    Args:
        values: (..., sources, targets, seeds), two seeds or more.

    Returns:
        (..., targets, seeds)
    """
    seeds, total = values.shape[-1], values.sum(axis=-1)
    each = [
        chosen_by((total - values[..., seed]) / (seeds - 1), values[..., [seed]])
        for seed in range(seeds)
    ]
    result: Floats = np.concatenate(each, axis=-1)
    return result


def mean_over_seeds(values: Floats) -> tuple[float, float, float]:
    """Mean of (targets, seeds) and its interval by Student's t over seeds; NaN with one seed, or
    where all are equal: the baseline is chosen everywhere, and nothing varies."""
    each = values.mean(axis=0)
    mean = float(each.mean())
    if len(each) < 2 or np.ptp(each) == 0:
        return mean, np.nan, np.nan
    error = float(each.std(ddof=1)) / len(each) ** 0.5
    half = float(stats.t.ppf((1 + LEVEL) / 2, len(each) - 1)) * error
    return mean, mean - half, mean + half


def half_width(values: Floats, chance: np.random.Generator, studies: int = STUDIES) -> float:
    """How far the mean of held-out values strays from 0 in 95 % of studies of noise alone.

    Args:
        values: (sources, targets, seeds), NaN where there is no pair.
        studies: how many are drawn in each way.
    """
    _, targets, seeds = values.shape
    signs = chance.choice((-1.0, 1.0), (studies, 1, targets, seeds))
    flipped = np.abs(heldout(values * signs).mean(axis=(1, 2)))
    residuals = (values - values.mean(axis=2, keepdims=True)).transpose(1, 0, 2)
    normal = chance.standard_normal((studies, targets, seeds, seeds)) / (seeds - 1) ** 0.5
    noise = (residuals @ normal).transpose(0, 2, 1, 3)
    drawn = np.abs(heldout(noise).mean(axis=(1, 2)))
    tail = (1 + LEVEL) / 2
    widening = float(stats.t.ppf(tail, targets * (seeds - 1)) / stats.norm.ppf(tail))
    return min(float(np.quantile(flipped, LEVEL)), widening * float(np.quantile(drawn, LEVEL)))
