"""What the best of several is worth: chosen on some numbers, judged by others.

A maximum of noisy means lies above every true mean: with nine sources, five seeds and no effect at
all it is 0.69 of the standard deviation of one run. A value is honest if what it is measured on had
no part in the choice. Two kinds of luck are in a mean over seeds: that of the seeds, and that of
the test dialogues, which all seeds of a source share. So a source is chosen by the other seeds on
one half of the dialogues, and judged by this seed on the other half; each half judges once, and
several random halves are taken. Judges share neither a seed nor a dialogue with those who chose,
and the expectation without effect is 0. The price is that half of the dialogues choose worse than
all of them, so that a held-out value is that of a somewhat worse choice.

The baseline, a delta of 0, is a candidate everywhere.

Held-out values share seeds and dialogues crosswise, so that no plain interval holds. The width is
that of studies of noise alone, in which 95 % of the held-out means lie: normal noise of seeds with
the variances that sources and halves have over seeds, and of dialogues with the covariance that
sources have over dialogues, less what seeds add to it by chance. Effects leave it as it is. It is
widened as Student's t is, by the degrees of freedom of the seeds' variances.

Noise of a source's training that all its targets share makes it too narrow: it holds 0 in 92 of 100
studies if half a run's deviation is shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from tasktransfer.stats.resampling import Floats

SPLITS = 5
"""Random halves of the dialogues."""
STUDIES = 1000
"""Of noise alone."""

LEVEL = 0.95

_AT_ONCE = 50
"""Studies of noise in memory."""

Halves = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Target:
    """The sources' deltas on one target.

    ``halves``: on the first and second half of the dialogues, (2, splits, sources, seeds);
    ``firsts``: which dialogues are the first half, (splits, dialogues);
    ``pulls``: how far each dialogue pulls the delta on all of them, (sources, seeds, dialogues), so
    that the sum of squares over dialogues is the delta's variance over test sets.
    """

    halves: Floats
    firsts: Halves
    pulls: Floats


def halved(dialogues: int, chance: np.random.Generator, splits: int = SPLITS) -> Halves:
    """Random halves, (splits, dialogues): True in the first, which is the smaller one."""
    order = np.tile(np.arange(dialogues), (splits, 1))
    firsts: Halves = chance.permuted(order, axis=1) < dialogues // 2
    return firsts


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


def heldout(halves: Floats) -> Floats:
    """Deltas of the sources that the other seeds choose on the other half.

    Args:
        halves: (2, ..., sources, seeds), two seeds or more.

    Returns:
        (..., seeds), the mean over which half judges.
    """
    seeds = halves.shape[-1]
    others = (halves.sum(axis=-1, keepdims=True) - halves) / (seeds - 1)
    which = others.argmax(axis=-2)[..., None, :]
    best = np.take_along_axis(others, which, axis=-2)[..., 0, :]
    judged = np.take_along_axis(halves[::-1], which, axis=-2)[..., 0, :]
    result: Floats = np.where(best > 0, judged, 0.0).mean(axis=0)
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


def half_width(
    targets: Sequence[Target], chance: np.random.Generator, studies: int = STUDIES
) -> float:
    """How far the mean of held-out values strays from 0 in 95 % of studies of noise alone."""
    # What seeds differ in on a dialogue is in the noise of seeds already.
    common = sum(float(np.nansum(target.pulls.mean(axis=1) ** 2)) for target in targets)
    of_seeds = sum(
        float(np.nansum(target.pulls.var(axis=1, ddof=1))) / target.pulls.shape[1]
        for target in targets
    )
    kept = max(0.0, 1 - of_seeds / common) ** 0.5 if common > 0 else 0.0
    means = sum(_noise(target, kept, chance, studies) for target in targets) / len(targets)
    degrees = len(targets) * (targets[0].halves.shape[-1] - 1)
    tail = (1 + LEVEL) / 2
    widening = float(stats.t.ppf(tail, degrees) / stats.norm.ppf(tail))
    return widening * float(np.quantile(np.abs(means), LEVEL))


def _noise(target: Target, kept: float, chance: np.random.Generator, studies: int) -> Floats:
    """The held-out mean of each study of noise, (studies,). ``kept``: how much of the dialogues'
    pull is common to all seeds."""
    halves, common = target.halves, target.pulls.mean(axis=1)
    sources, seeds = halves.shape[2:]
    residuals = halves - halves.mean(axis=-1, keepdims=True)
    # Few seeds tell neither a source's own variance nor how sources correlate; noise would choose
    # those that chance made vary most. Half of a variance is the target's, and sources share what
    # their mean does: that of their baseline.
    variances = np.square(residuals).mean(axis=(0, 1, 3))
    shrunk = (variances + variances.mean()) / 2
    residuals *= np.sqrt(shrunk / np.where(variances > 0, variances, 1.0))[:, None]
    shared = residuals.mean(axis=2, keepdims=True)
    own = (residuals - shared)[..., None, :]
    in_half = 2 * np.stack([target.firsts, ~target.firsts]).astype(np.float64)
    # (2, splits, sources, dialogues): how far a dialogue pulls the delta on its half.
    reach = kept * in_half[:, :, None, :] * common
    result = []
    for begin in range(0, studies, _AT_ONCE):
        some = min(_AT_ONCE, studies - begin)
        of_seed = chance.standard_normal((some, 1, 1, seeds, seeds)) / (seeds - 1) ** 0.5
        of_source = chance.standard_normal((some, 1, 1, sources, seeds, seeds)) / (seeds - 1) ** 0.5
        of_dialogue = chance.standard_normal((some, common.shape[-1]))
        alike = np.moveaxis(reach @ of_dialogue.T, -1, 0)[..., None]
        noise = shared @ of_seed + (own @ of_source)[..., 0, :] + alike
        result.append(heldout(np.moveaxis(noise, 0, 1)).mean(axis=(1, 2)))
    return np.concatenate(result)
