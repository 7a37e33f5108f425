"""How sure a mean delta is: a bootstrap over seeds and test instances together.

A cell is a mean over a few seeds (trainings) of a difference of two scores on one test set. Both
the seeds and the test instances are samples: other seeds and other instances would have given
another number, and the number that is wanted is the one expected over both. Seeds and instances
are crossed (every seed answers every instance), so that the variance of the mean over S seeds is

    Var = V_seed + (V_instance - V_both)

    V_seed      s^2 / S, with s^2 the variance of the seeds' deltas
    V_instance  variance of the mean over seeds when the instances are resampled
    V_both      what is in both of them: seeds that differ on the same instances make V_seed and
                V_instance larger at once. It is the variance that seeds add to a joint resampling
                of seeds and instances beyond what they have on the test set at hand.

This is the variance of the joint bootstrap without its two well-known faults: drawn naively, with
S seeds, it has the factor (S - 1)/S, which halves the variance of two seeds and takes a fifth of
that of five, and it counts V_both more than once (Brennan 2007, "Unbiased estimates of variance
components with bootstrap procedures"; Owen and Eckles 2012, "Bootstrapping data arrays of
arbitrary order"). The resampling of seeds needs no random draws: its variance has a closed form.

A variance out of five seeds is itself uncertain, so that quantiles of the normal distribution
would be too small. Each part has a t distribution of its own degrees d; with w its share of Var,
and z and t the quantiles at level a,

    (half width of the interval at level 1 - a)^2
        = Var (z^2 + sum over parts of w^1.5 (t_d^2 - z^2))

and p is the a at which the interval begins to hold 0. Where one part is all this is exact (for
normal deviations). In between, the power decides: 1 adds the parts' squared half widths, and covers
up to 96.6 % instead of 95 with five seeds; 2 is about Satterthwaite's degrees of freedom, which
cover 94 to 95 %, but whose small p, where false discovery control looks, are far too small (up to
17-fold at 0.0001 with five seeds, 80-fold with three). 1.5 covers 95 to 95.7 % with five seeds, and
its p at 0.0001 are within a factor of 2 (benchmarks/statistics_simulation.py has whole studies).

What is resampled is the official score (macro-F1 and so on), computed anew from the summed tallies
of the drawn instances. The same instances are drawn for the transfer run and its baseline, for all
seeds and for all runs on a test set. Instances of one dialogue are drawn one by one, as if they
were independent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from tasktransfer.core.digests import digest_of

VERSION = 2
"""Raise this when a change in the code changes a number: rows made before are then made anew."""

RESAMPLES = 1000
"""How many times a test set is drawn. A standard error from 1,000 draws is off by 2 %, which moves
the coverage of a 95 % interval by less than a tenth of a point."""

LEVEL = 0.95

_NOTHING = 1e-9
"""A standard error below this is rounding, in points."""

_SHARE_POWER = 1.5
"""How the degrees of freedom of several variances are joined, see above."""

_DRAWN_AT_ONCE = 1 << 22

Floats = npt.NDArray[np.float64]
Weights = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean delta in points over ``seeds`` seeds. ``parts``: the independent variances that its
    own is the sum of, each with its degrees of freedom; none: how sure it is cannot be told."""

    delta: float
    parts: tuple[tuple[float, float], ...]
    seeds: int

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


def instance_weights(dataset: str, target: str, instances: int) -> Weights:
    """How often each test instance is drawn, (RESAMPLES, instances); each row sums to instances.

    Seeded by its arguments: every run on a test set, today and tomorrow, meets the same draws.
    """
    seed = digest_of([VERSION, dataset, target, instances])
    chance = np.random.Generator(np.random.PCG64(int(seed[:32], 16)))
    weights = np.empty((RESAMPLES, instances), np.float32)
    step = max(1, _DRAWN_AT_ONCE // instances)
    for begin in range(0, RESAMPLES, step):
        rows = min(step, RESAMPLES - begin)
        drawn = chance.integers(0, instances, (rows, instances), dtype=np.int32)
        drawn += np.arange(rows, dtype=np.int32)[:, None] * np.int32(instances)
        counts = np.bincount(drawn.ravel(), minlength=rows * instances)
        weights[begin : begin + rows] = counts.reshape(rows, instances)
    return weights


def resampled_scores(
    tally: npt.NDArray[Any], weights: Weights, score: Callable[[npt.NDArray[Any]], npt.ArrayLike]
) -> Floats:
    """The score on each resampled test set, (..., resamples).

    Args:
        tally: (..., instances, columns), what each instance adds to the sums that a score is made
            of; of one run or of several.
        weights: see ``instance_weights``.
        score: sums (..., resamples, columns) to scores (..., resamples).
    """
    *runs, instances, columns = tally.shape
    # One product for all runs. Counts stay exact in 32 bits; a sum of shares has seven digits.
    by_instance = np.moveaxis(tally, -2, 0).reshape(instances, -1).astype(np.float32)
    sums = np.moveaxis((weights @ by_instance).reshape(len(weights), *runs, columns), 0, -2)
    return np.asarray(score(sums), np.float64)


def estimate(
    deltas: Sequence[float] | Floats, resampled: Floats | None, instances: int = 0
) -> Estimate:
    """The mean delta of a cell and how sure it is.

    Args:
        deltas: (seeds,) score - baseline score of each seed.
        resampled: (seeds, resamples) the same on resampled test sets; None: no predictions, so
            that seeds alone say how sure the mean is, for the test set at hand.
        instances: size of the test set.

    Returns:
        With one seed the standard error is that of the instances alone: how sure this training's
        delta is, not how sure the cell's is. With one seed and no predictions it is NaN.

    Scores move in steps, about 100 / instances: seeds that agree to the last digit do so by
    rounding, and their variance is not taken to be less than that of rounding.
    """
    each = np.asarray(deltas, np.float64)
    seeds = len(each)
    by_seed = float(each.var(ddof=1)) / seeds if seeds > 1 else 0.0
    by_instance = float(resampled.mean(axis=0).var(ddof=1)) if resampled is not None else 0.0
    parts = []
    if seeds > 1:
        step = 100 / instances if by_instance > 0 else 0.0
        parts.append((max(by_seed, step**2 / 12 / seeds), float(seeds - 1)))
    if resampled is not None:
        both = _in_both(each, resampled) if seeds > 1 else 0.0
        parts.append((max(0.0, by_instance - both), float(max(1, instances - 1))))
    return Estimate(float(each.mean()), tuple(parts), seeds)


def _in_both(deltas: Floats, resampled: Floats) -> float:
    """V_both: variance over seeds of how resampling moves each of them, averaged over resamples.

    Equal, without its noise, to the variance that seeds add when both are resampled, less what
    they add on the test set at hand. The mean shift of a seed is the bias of resampling and no
    variance.
    """
    moved = resampled - resampled.mean(axis=1, keepdims=True)
    return float(moved.var(axis=0, ddof=1).mean()) / len(deltas)


def confidence(estimated: Estimate) -> Confidence:
    """Interval and test of one mean delta, see ``confidences``."""
    return confidences([estimated])[0]


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
