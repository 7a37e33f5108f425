"""How sure a mean delta is: variances of seeds and of dialogues, its interval and its test.

A cell is the difference of two means of scores on one test set: of S transfer runs, and of B
baselines, each trained with a seed of its own. Both the seeds and the dialogues of the test set
are samples: others would have given another number, and the number that is wanted is the one
expected over both. They are crossed (every seed answers every dialogue), so that the variance is

    Var = V_seed + (V_dialogue - V_both)

    V_seed      that of the two means over seeds, see below
    V_dialogue  that of their difference over other dialogues (``stats.draws``)
    V_both      what is in both of them: seeds that differ on the same dialogues make V_seed and
                V_dialogue larger at once. It is V_seed of how far other dialogues move each
                training, averaged over them.

This is the variance of the joint bootstrap without its two well-known faults: drawn naively, with
S seeds, it has the factor (S - 1)/S, which halves the variance of two seeds and takes a fifth of
that of five, and it counts V_both more than once (Brennan 2007, "Unbiased estimates of variance
components with bootstrap procedures"; Owen and Eckles 2012, "Bootstrapping data arrays of
arbitrary order"). The resampling of seeds needs no random draws: its variance has a closed form.

A difference is of the seeds that both sides have: a run of one seed beside a baseline of another
says as much of the two seeds as of the transfer, and runs equal to their baselines seed by seed
would seem to differ where some are missing. A study may have trained baselines of further seeds on
purpose (``more_baselines``); these, and no others, count beside the shared ones. Of m shared seeds
and B baselines, V_seed is the sum of

    m s^2(t / m - b / B)      the pairs,                       m - 1 degrees of freedom
    (B - m) s^2(b) / B^2      baselines without such a run,    B - 1

where s^2 is the variance over seeds. With B = m this is the variance of the mean of the paired
differences. Of one pair nothing is known that its two have in common, and the baselines are all
taken as the row without a partner.

A variance out of five seeds is itself uncertain, so that quantiles of the normal distribution
would be too small. Each part has a t distribution of its own degrees d (of dialogues:
``Units.degrees``); with w its share of Var, and z and t the quantiles at level a,

    (half width of the interval at level 1 - a)^2
        = Var (z^2 + sum over parts of w^1.5 (t_d^2 - z^2))

and p is the a at which the interval begins to hold 0. Where one part is all this is exact (for
normal deviations). In between, the power decides: 1 adds the parts' squared half widths, and covers
up to 96.6 % instead of 95 with five seeds; 2 is about Satterthwaite's degrees of freedom, which
with two or three seeds cover 90 to 94 %, and whose p <= 0.001 are up to 27 times as frequent as
they should be, where false discovery control looks. 1.5 covers 94 to 97 % (docs/analysis.md has
the simulated studies).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from tasktransfer.stats.draws import Floats, Units

VERSION = 3
"""Raise this when a change in the code changes an estimate or an interval: tables that take over
earlier rows make them anew then."""

LEVEL = 0.95

_NOTHING = 1e-9
"""A standard error below this is rounding, in points."""

_SHARE_POWER = 1.5
"""How the degrees of freedom of several variances are joined, see above."""


@dataclass(frozen=True, slots=True)
class Trainings:
    """Trainings of one kind, one a seed. ``scores``: (seeds,), 0-100; ``resampled``: the same on
    other test sets, whose variance is that over test sets, (seeds, test sets); None: no
    predictions, so that seeds alone say how sure a mean is, for the test set at hand."""

    seeds: tuple[int, ...]
    scores: Floats
    resampled: Floats | None = None

    @property
    def moved(self) -> Floats:
        """How far other test sets move each training, (seeds, test sets). The mean over them is the
        bias of resampling and no variance."""
        assert self.resampled is not None
        moved: Floats = self.resampled - self.resampled.mean(axis=1, keepdims=True)
        return moved

    def of(self, seeds: Sequence[int]) -> Trainings:
        """Those of some of its seeds, in that order."""
        at = [self.seeds.index(seed) for seed in seeds]
        resampled = None if self.resampled is None else self.resampled[at]
        return Trainings(tuple(seeds), self.scores[at], resampled)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean delta in points over the ``seeds`` seeds that both sides have; NaN where it is 0.

    ``parts``: the independent variances that its own is the sum of, each with its degrees of
    freedom; none: how sure it is cannot be told. ``of_test_set``: the one of them that dialogues or
    instances add; NaN: cannot be told.
    """

    delta: float
    parts: tuple[tuple[float, float], ...]
    seeds: int
    of_test_set: float = 0.0

    @property
    def standard_error(self) -> float:
        """Of the mean delta, in points."""
        return float(sum(variance for variance, _ in self.parts)) ** 0.5 if self.parts else np.nan


@dataclass(frozen=True, slots=True)
class Confidence:
    """A 95 % interval, the two-sided p of no effect, and the degrees of freedom of the t
    distribution that gives this interval; NaN where they cannot be told."""

    low: float
    high: float
    p: float
    degrees: float


def estimate(
    transfer: Trainings,
    baseline: Trainings,
    units: Units | None = None,
    *,
    more_baselines: bool = False,
) -> Estimate:
    """The mean delta of a cell, over the seeds that both sides have, and how sure it is.

    Args:
        transfer, baseline: either has resampled scores, on the same draws, or neither.
        units: what was drawn; not without resampled scores.
        more_baselines: baselines of seeds that no run has were trained to make the baseline surer,
            and count too. Never because runs are missing.

    Returns:
        Without a shared seed there is no difference: delta NaN, 0 ``seeds``, no ``parts``, and the
        ``Confidence`` of it is NaN throughout. With one seed the standard error is that of the test
        set alone: how sure this training's delta is, not how sure the cell's is. With one seed and
        no predictions it is NaN, and so it is with fewer than two dialogues.

    Scores move in steps, about 100 / instances: seeds that agree to the last digit do so by
    rounding, and their variance is not taken to be less than that of rounding.
    """
    shared = [seed for seed in transfer.seeds if seed in set(baseline.seeds)]
    if not shared:
        return Estimate(np.nan, (), 0, np.nan)
    transfer = transfer.of(shared)
    unpaired = [seed for seed in baseline.seeds if seed not in shared] if more_baselines else []
    baseline = baseline.of([*shared, *unpaired])
    delta = float(transfer.scores.mean() - baseline.scores.mean())
    parts = [
        (float(variance), degrees)
        for variance, degrees in _over_seeds(transfer.scores, baseline.scores)
    ]
    seeds = len(shared)
    if units is None:
        unknown = np.nan if seeds < 2 else 0.0
        return Estimate(delta, tuple(parts) if seeds > 1 else (), seeds, unknown)
    assert transfer.resampled is not None
    assert baseline.resampled is not None
    drawn = transfer.resampled.mean(axis=0) - baseline.resampled.mean(axis=0)
    of_units = float(drawn.var(ddof=1))
    both = _over_seeds(transfer.moved, baseline.moved)
    in_both = float(sum(variance.sum() for variance, _ in both)) / (len(drawn) - 1)
    if parts and of_units > 0:
        step = 100 / units.instances
        parts[0] = (max(parts[0][0], step**2 / 12 / seeds), parts[0][1])
    # Not max(): it would make 0 of an unknown variance.
    of_test_set = float(np.maximum(0.0, of_units - in_both))
    parts.append((of_test_set, units.degrees))
    return Estimate(delta, tuple(parts), seeds, of_test_set)


def _over_seeds(transfer: Floats, baseline: Floats) -> list[tuple[Floats, float]]:
    """The parts of V_seed with their degrees of freedom, for values (seeds, ...) of runs and of
    baselines, these of the runs' seeds first. Of one seed alone no variance is known, and its part
    is left out."""
    runs, baselines = len(transfer), len(baseline)
    paired = runs if runs > 1 else 0
    parts = []
    if paired:
        both = transfer / runs - baseline[:runs] / baselines
        parts.append((runs * both.var(axis=0, ddof=1), float(runs - 1)))
    if baselines > max(1, paired):
        variance = (baselines - paired) / baselines**2 * baseline.var(axis=0, ddof=1)
        parts.append((variance, float(baselines - 1)))
    return parts


def confidence(estimated: Estimate) -> Confidence:
    """Interval and test of one mean delta, see ``confidences``."""
    return confidences([estimated])[0]


def confidence_of_mean(
    trainings: Trainings, units: Units | None, *, least: float = 0.0, most: float = 100.0
) -> Confidence:
    """Interval of a mean score, and test of its being 0.

    A score near an end of its scale strays farther to the middle than to the end. So the interval
    is of the score's logit on the scale, and has its ends within it; of correlations, from -100 to
    100, that is Fisher's z. A scale that is open at one end, and a score at an end, have the plain
    interval, cut off at the scale's ends.

    Args:
        units: see ``estimate``.
        least, most: the ends of the score's scale.
    """
    resampled = trainings.resampled
    nowhere = None if resampled is None else np.zeros_like(resampled)
    nothing = Trainings(trainings.seeds, np.zeros_like(trainings.scores), nowhere)
    estimated = estimate(trainings, nothing, units)
    mean, sure = estimated.delta, confidence(estimated)
    if np.isinf([least, most]).any() or not least < mean < most or np.isnan(sure.low):
        low, high = np.clip([sure.low, sure.high], least, most).tolist()
        return replace(sure, low=low, high=high)
    width = most - least
    slope = width / ((mean - least) * (most - mean))
    parts = tuple((slope**2 * variance, degrees) for variance, degrees in estimated.parts)
    # From the logit of 0, so that the test is of 0. Where 0 is an end the plain test stays.
    tests_zero = least < 0 < most
    origin = float(special.logit(-least / width)) if tests_zero else 0.0
    away = float(special.logit((mean - least) / width)) - origin
    of_logit = confidence(replace(estimated, delta=away, parts=parts))
    low, high = (
        least + width * special.expit([of_logit.low + origin, of_logit.high + origin])
    ).tolist()
    return replace(sure, low=low, high=high, p=of_logit.p if tests_zero else sure.p)


def confidences(estimates: Sequence[Estimate]) -> list[Confidence]:
    """Interval and test of each mean delta.

    A standard error of 0 (every seed has the same delta, and no instance matters) is no certainty.
    Equal runs, delta 0: the interval is [0, 0] and p is 1. A delta other than 0: there is no
    interval, and p is that of the sign test over seeds, 2 / 2^seeds, which is all that so few
    equal numbers can say.
    """
    regular = [one for one in estimates if one.standard_error >= _NOTHING]
    sure = iter(_regular(regular) if regular else ())
    return [next(sure) if one.standard_error >= _NOTHING else _degenerate(one) for one in estimates]


def _regular(estimates: Sequence[Estimate]) -> list[Confidence]:
    delta = np.array([one.delta for one in estimates])
    error = np.array([one.standard_error for one in estimates])
    widest = max(len(one.parts) for one in estimates)
    padded = [(*one.parts, *[(0.0, 1.0)] * (widest - len(one.parts))) for one in estimates]
    variances, degrees = np.moveaxis(np.array(padded), 2, 0)
    shares = (variances / error[:, None] ** 2) ** _SHARE_POWER

    def reach(level: npt.ArrayLike) -> Floats:
        """Half the width of the interval that misses with this probability, in standard errors."""
        tail = np.asarray(level, np.float64)[..., None] / 2
        normal = stats.norm.isf(tail) ** 2
        more = stats.t.isf(tail, degrees) ** 2 - normal
        squared = normal[..., 0] + (shares * more).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(squared, 0)), np.float64)

    at_level = reach(1 - LEVEL)
    # No smaller than e^-300, where the quantiles with one degree of freedom still have squares.
    size, away, tail = len(estimates), np.abs(delta) / error, (1 - LEVEL) / 2
    p = np.exp(_falling_root(lambda x: reach(np.exp(x)) - away, -300.0, 0.0, size))
    like = np.exp(_falling_root(lambda x: stats.t.isf(tail, np.exp(x)) - at_level, 0.0, 14.0, size))
    p[np.isnan(at_level)] = np.nan
    return [
        Confidence(*map(float, row))
        for row in zip(delta - at_level * error, delta + at_level * error, p, like, strict=True)
    ]


def _falling_root(
    function: Callable[[Floats], Floats], low: float, high: float, size: int
) -> Floats:
    """Where each element of a function that falls with its argument crosses 0, by bisection; the
    nearer end where it does not cross between the two."""
    left, right = np.full(size, low), np.full(size, high)
    for _ in range(60):
        middle = (left + right) / 2
        above = function(middle) > 0
        left, right = np.where(above, middle, left), np.where(above, right, middle)
    return right


def _degenerate(estimated: Estimate) -> Confidence:
    if not np.isfinite(estimated.standard_error):
        return Confidence(np.nan, np.nan, np.nan, np.nan)
    if abs(estimated.delta) < _NOTHING:
        return Confidence(0.0, 0.0, 1.0, np.nan)
    return Confidence(np.nan, np.nan, min(1.0, 2.0 / 2**estimated.seeds), np.nan)
