"""Held-out value of the best source, which is selected and evaluated on different data.

A maximum of noisy means is biased upwards: with nine sources, five seeds and no effect, its
expectation is 0.69 standard deviations of one run. An unbiased value must not be measured on the
data that selected the source. The noise of a mean over seeds has two parts: that of the seeds, and
that of the test dialogues, which all seeds of a source share. So a source is selected by the other
seeds on one half of the dialogues, and evaluated by this seed on the other half. Each half
evaluates once, and several random halves are used. Selection and evaluation share neither a seed
nor a dialogue, so the expectation without effect is 0. The price is that half of the dialogues
select less well than all of them, so a held-out value is that of a somewhat worse selection.

The baseline, with a delta of 0, is always a candidate.

Held-out values share seeds and dialogues crosswise, so a plain interval would be wrong. The width
of the interval contains 95 % of the held-out means of simulated studies without effects. They have
normal noise of seeds, with the sources' and halves' variances over seeds, and normal noise of
dialogues, with the sources' covariance over dialogues minus the chance contribution of seeds. The
width does not depend on effects. It is widened like Student's t, by the degrees of freedom of the
seeds' variances.

Noise in a source's training that all its targets share makes the interval too narrow: it covers 0
in 92 of 100 studies if half of a run's deviation is shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from tasktransfer.stats.draws import Floats

SPLITS = 5
"""Number of random splits of the dialogues into halves."""
STUDIES = 1000
"""Number of simulated studies without effects."""

LEVEL = 0.95

_AT_ONCE = 50
"""Number of simulated studies that are in memory at once."""

Halves = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Target:
    """The sources' deltas on one target.

    Args:
        halves: deltas on the first and second half of the dialogues, shape (2, splits, sources,
            seeds).
        firsts: true for dialogues of the first half, shape (splits, dialogues).
        pulls: influence of each dialogue on the delta on all dialogues, shape (sources, seeds,
            dialogues). The sum of squares over dialogues is the delta's variance over test sets.
    """

    halves: Floats
    firsts: Halves
    pulls: Floats


def split_dialogues(dialogues: int, chance: np.random.Generator, splits: int = SPLITS) -> Halves:
    """Return masks of the dialogues in the smaller half of random divisions.

    They have the shape (splits, dialogues).
    """
    order = np.tile(np.arange(dialogues), (splits, 1))
    firsts: Halves = chance.permuted(order, axis=1) < dialogues // 2
    return firsts


def select_best_source(means: Floats, values: Floats) -> Floats:
    """Return the values of the best source by mean, or 0 if no mean is above 0.

    Args:
        means: shape (..., sources, targets), NaN if there is no pair.
        values: shape (..., sources, targets, seeds).

    Returns:
        Values, shape (..., targets, seeds).
    """
    ranked = np.where(np.isnan(means), -np.inf, means)
    which = ranked.argmax(axis=-2)[..., None, :]
    best = np.take_along_axis(ranked, which, axis=-2)[..., 0, :]
    taken = np.take_along_axis(values, which[..., None], axis=-3)[..., 0, :, :]
    result: Floats = np.where(best[..., None] > 0, taken, 0.0)
    return result


def compute_heldout_deltas(halves: Floats) -> Floats:
    """Return the held-out deltas of sources selected on the other seeds and half.

    Args:
        halves: shape (2, ..., sources, seeds), with at least two seeds.

    Returns:
        Deltas, shape (..., seeds), averaged over both evaluating halves.
    """
    seeds = halves.shape[-1]
    others = (halves.sum(axis=-1, keepdims=True) - halves) / (seeds - 1)
    which = others.argmax(axis=-2)[..., None, :]
    best = np.take_along_axis(others, which, axis=-2)[..., 0, :]
    judged = np.take_along_axis(halves[::-1], which, axis=-2)[..., 0, :]
    result: Floats = np.where(best > 0, judged, 0.0).mean(axis=0)
    return result


def compute_mean_over_seeds(values: Floats) -> tuple[float, float, float]:
    """Compute the mean of (targets, seeds), with a 95 % interval over seeds (Student's t).

    The interval is NaN with one seed, or if all values are the same because the baseline is always
    selected.
    """
    each = values.mean(axis=0)
    mean = float(each.mean())
    if len(each) < 2 or np.ptp(each) == 0:
        return mean, np.nan, np.nan
    error = float(each.std(ddof=1)) / len(each) ** 0.5
    half = float(stats.t.ppf((1 + LEVEL) / 2, len(each) - 1)) * error
    return mean, mean - half, mean + half


def simulate_half_width(
    targets: Sequence[Target], chance: np.random.Generator, studies: int = STUDIES
) -> float:
    """Simulate the half width around 0 with 95 % of held-out means if there is no effect."""
    # Differences between seeds on a dialogue are already part of the noise of seeds.
    common = sum(float(np.nansum(target.pulls.mean(axis=1) ** 2)) for target in targets)
    of_seeds = sum(
        float(np.nansum(target.pulls.var(axis=1, ddof=1))) / target.pulls.shape[1]
        for target in targets
    )
    kept = max(0.0, 1 - of_seeds / common) ** 0.5 if common > 0 else 0.0
    means = sum(_simulate_noise(target, kept, chance, studies) for target in targets) / len(targets)
    degrees = len(targets) * (targets[0].halves.shape[-1] - 1)
    tail = (1 + LEVEL) / 2
    widening = float(stats.t.ppf(tail, degrees) / stats.norm.ppf(tail))
    return widening * float(np.quantile(np.abs(means), LEVEL))


def _simulate_noise(
    target: Target, kept: float, chance: np.random.Generator, studies: int
) -> Floats:
    """Simulate the held-out means of studies without any effect, shape (studies,).

    ``kept`` is the part of the dialogues' influence that is common to all seeds.
    """
    halves, common = target.halves, target.pulls.mean(axis=1)
    sources, seeds = halves.shape[2:]
    residuals = halves - halves.mean(axis=-1, keepdims=True)
    # Few seeds estimate neither a source's own variance nor correlations between sources, and noise
    # would select sources whose variance is overestimated. So half of each variance is the target's
    # mean variance, and sources share the variation of their mean, which is that of the baseline.
    variances = np.square(residuals).mean(axis=(0, 1, 3))
    shrunk = (variances + variances.mean()) / 2
    residuals *= np.sqrt(shrunk / np.where(variances > 0, variances, 1.0))[:, None]
    shared = residuals.mean(axis=2, keepdims=True)
    own = (residuals - shared)[..., None, :]
    in_half = 2 * np.stack([target.firsts, ~target.firsts]).astype(np.float64)
    # (2, splits, sources, dialogues): influence of a dialogue on the delta on its half.
    reach = kept * in_half[:, :, None, :] * common
    result = []
    for begin in range(0, studies, _AT_ONCE):
        some = min(_AT_ONCE, studies - begin)
        of_seed = chance.standard_normal((some, 1, 1, seeds, seeds)) / (seeds - 1) ** 0.5
        of_source = chance.standard_normal((some, 1, 1, sources, seeds, seeds)) / (seeds - 1) ** 0.5
        of_dialogue = chance.standard_normal((some, common.shape[-1]))
        alike = np.moveaxis(reach @ of_dialogue.T, -1, 0)[..., None]
        noise = shared @ of_seed + (own @ of_source)[..., 0, :] + alike
        result.append(compute_heldout_deltas(np.moveaxis(noise, 0, 1)).mean(axis=(1, 2)))
    return np.concatenate(result)
