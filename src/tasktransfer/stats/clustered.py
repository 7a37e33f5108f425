"""Rank correlations of clustered items, such as several responses to one context."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from tasktransfer.stats.draws import Floats, create_generator

_DRAWN_AT_ONCE = 1 << 22


def resample_spearman(one: Floats, other: Floats, weights: npt.NDArray[np.float32]) -> Floats:
    """Compute Spearman's correlation on resampled items.

    Args:
        one, other: values, shape (items,).
        weights: number of times that each item is resampled, shape (draws, items).

    Returns:
        Correlations, shape (draws,), with mean ranks for ties; 0 if either side is constant.
    """
    step = max(1, _DRAWN_AT_ONCE // len(one))
    parts = []
    for begin in range(0, len(weights), step):
        some = weights[begin : begin + step].astype(np.float64)
        parts.append(_compute_pearson(_compute_ranks(one, some), _compute_ranks(other, some), some))
    return np.concatenate(parts)


def compute_percentile_interval(drawn: Floats, *names: str) -> tuple[float, float]:
    """Compute the 95 % percentile interval of a mean over seeds, also resampling seeds.

    It is too narrow with few seeds.

    Args:
        drawn: values for resampled clusters, shape (seeds, draws).
        names: names that seed the random generator.
    """
    seeds, draws = drawn.shape
    chosen = create_generator(*names).integers(seeds, size=(seeds, draws))
    means = np.take_along_axis(drawn, chosen, axis=0).mean(axis=0)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def compare_raters(
    one: Floats, other: Floats, gold: Floats, weights: npt.NDArray[np.float32], contexts: int
) -> tuple[float, float, float, float]:
    """Compare two raters' correlations with common ratings by resampling contexts.

    Unlike Williams' test, this accounts for the dependence between items of one context.

    Args:
        one, other, gold: ratings, shape (items,).
        weights: number of times that each item is resampled with its context, (draws, items).
        contexts: number of contexts; the t distribution has one degree of freedom less.

    Returns:
        The difference of Spearman's correlations, the ends of its 95 % interval, and the two-sided
        p of no difference. Interval and p are NaN with fewer than two contexts, or if the
        difference does not vary.
    """
    drawn = resample_spearman(one, gold, weights) - resample_spearman(other, gold, weights)
    difference = _compute_spearman(one, gold) - _compute_spearman(other, gold)
    error = float(drawn.std(ddof=1)) if contexts > 1 else 0.0
    if error < 1e-9:
        return difference, math.nan, math.nan, math.nan
    reach = error * float(-special.stdtrit(contexts - 1, 0.025))
    p = float(2 * special.stdtr(contexts - 1, -abs(difference) / error))
    return difference, difference - reach, difference + reach, p


def _compute_spearman(one: Floats, other: Floats) -> float:
    return float(resample_spearman(one, other, np.ones((1, len(one)), np.float32))[0])


def _compute_ranks(values: Floats, weights: Floats) -> Floats:
    """Compute the mid-rank of each item among resampled items, shape (draws, items)."""
    _, group = np.unique(values, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(group.max() + 1))
    together = np.add.reduceat(weights[:, order], starts, axis=1)
    ranks: Floats = (together.cumsum(axis=1) - together / 2)[:, group]
    return ranks


def _compute_pearson(x: Floats, y: Floats, weights: Floats) -> Floats:
    total = weights.sum(axis=1, keepdims=True)
    x = x - (weights * x).sum(axis=1, keepdims=True) / total
    y = y - (weights * y).sum(axis=1, keepdims=True) / total
    spread = np.sqrt((weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1))
    together = (weights * x * y).sum(axis=1)
    tells_apart = spread > 1e-9 * np.maximum(total[:, 0], 1)
    found: Floats = np.divide(together, spread, out=np.zeros_like(spread), where=tells_apart)
    return found


def compute_williams_test(r12: float, r13: float, r23: float, n: int) -> tuple[float, float]:
    """Test whether two correlations with a common variable (r12, r13) differ (Williams' test).

    Williams (1959), in the form of Steiger (1980), equation 7; n - 3 degrees of freedom.

    Returns:
        t and the two-sided p; NaN with fewer than four items, or if both raters are equal.
    """
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    if n < 4:
        return math.nan, math.nan
    mean = (r12 + r13) / 2
    below = 2 * (n - 1) / (n - 3) * max(0.0, determinant) + mean**2 * (1 - r23) ** 3
    if below <= 0:
        return math.nan, math.nan
    t = (r12 - r13) * math.sqrt((n - 1) * (1 + r23) / below)
    return t, float(2 * special.stdtr(n - 3, -abs(t)))


def compute_split_half_agreement(
    ratings: list[list[float]], seed: int = 0, splits: int = 100
) -> float:
    """Compute the split-half agreement between annotators.

    It is Spearman's correlation between the mean ratings of two random halves of each item's
    annotators, averaged over splits. Items with one rating are left out. NaN if fewer than three
    items are left.
    """
    from scipy.stats import spearmanr  # noqa: PLC0415  # slow to import, and rarely needed

    several = [rating for rating in ratings if len(rating) > 1]
    if len(several) < 3:
        return math.nan
    chance = np.random.default_rng(seed)
    found = []
    for _ in range(splits):
        halves = np.empty((2, len(several)))
        for index, rating in enumerate(several):
            order = chance.permutation(rating)
            halves[:, index] = order[: len(rating) // 2].mean(), order[len(rating) // 2 :].mean()
        if halves.std(axis=1).min() > 0:
            found.append(float(spearmanr(*halves).statistic))
    return float(np.mean(found)) if found else math.nan


def compute_reliability(ratings: list[list[float]], agreement: float) -> float:
    """Compute the reliability of the annotators' mean rating (Spearman-Brown formula).

    It is the fraction of the mean's variance that is not due to annotators. Its square root is the
    highest possible correlation with that mean.

    A half of m annotators and one of n correlate by sqrt(r(m) r(n)), where r(k) = k r / (1 + (k -
    1) r) is the reliability of k annotators and r that of one; with m = n this is 2 a / (1 + a).

    Args:
        ratings: ratings of each item.
        agreement: agreement of the halves (``compute_split_half_agreement``).

    Returns:
        0 if the halves do not agree at all; NaN if the agreement is unknown.
    """
    counts = [len(rating) for rating in ratings if len(rating) > 1]
    if math.isnan(agreement) or not counts:
        return math.nan
    if agreement <= 0:
        return 0.0
    k = float(np.mean(counts))
    m = float(np.mean([count // 2 for count in counts]))

    def apply_spearman_brown(raters: float, rating: float) -> float:
        return raters * rating / (1 + (raters - 1) * rating)

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        halves = math.sqrt(apply_spearman_brown(m, middle) * apply_spearman_brown(k - m, middle))
        low, high = (middle, high) if halves < agreement else (low, middle)
    return apply_spearman_brown(k, low)
