"""How good a ranking of sources is: regret, NDCG, Spearman, and the floor that noise of seeds sets.

A selector gives each source of a target a value, higher is better; what it is judged by are the
scores of the finished transfers. Sources of equal value are ordered by chance, and every number
here is its expectation in closed form: ``random`` is the selector whose values are all equal. A
missing value is ranked last. Regret is told in points and per cent, and its variants have different
names because papers mean different things by one name:

``regret@k``            best of k: max over sources - max over the selector's first k (Poth 2021,
                        Lin 2024, Schulte 2024); ``%``: divided by the former
``mean_regret@k``       mean of k: the mean of the best k - the mean of the selector's first k
                        (TaskWeb 2023); ``%`` likewise
``ndcg_rank``           gain 2^rel - 1 of rel = n - rank (TaskWeb)
``ndcg_percent``        of rel = the score in 0-100: the best source decides it (Schulte)
``ndcg_fraction``       of rel = the score in 0-1: nothing decides it (Lin)
``spearman``            of values and scores over sources
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb as binomial

from tasktransfer.stats.resampling import Floats

KS = (1, 3)
MOST_HALVINGS = 300
"""Of seeds: all of up to 10 seeds, as many random ones of more."""
PERCENT = "%"
REGRET, MEAN_REGRET, SPEARMAN = "regret@", "mean_regret@", "spearman"


def higher_is_better(measure: str) -> bool:
    """Whether a selector is better with more of it."""
    return measure.startswith("ndcg") or measure == SPEARMAN


def measures(values: Floats, scores: Floats, ks: tuple[int, ...] = KS) -> dict[str, Floats]:
    """Every measure of every target.

    Args:
        values: of a selector, (..., targets, sources); NaN: missing, ranked last.
        scores: of the transfers, 0-100, of the same shape; NaN: no pair. Either may be broadcast.

    Returns:
        Measure → (..., targets); NaN where a target has no two sources, or nothing to tell.
    """
    values, scores = np.broadcast_arrays(np.asarray(values, float), np.asarray(scores, float))
    pairs = ~np.isnan(scores)
    ranked = np.where(pairs & ~np.isnan(values), values, -np.inf)
    top = -np.sort(-scores, axis=-1)
    found: dict[str, Floats] = {}
    for k in ks:
        best, chosen = top[..., 0], best_of(ranked, scores, k)
        found[f"{REGRET}{k}"] = best - chosen
        found[f"{REGRET}{k}{PERCENT}"] = _per_cent(best - chosen, best)
        best, chosen = _mean_of_first(top, k), mean_of(ranked, scores, k)
        found[f"{MEAN_REGRET}{k}"] = best - chosen
        found[f"{MEAN_REGRET}{k}{PERCENT}"] = _per_cent(best - chosen, best)
    above, tied = _places(ranked, pairs)
    for name, relevance in NDCG.items():
        found[name] = _ndcg(relevance(scores), above, tied)
    found[SPEARMAN] = _spearman(above + (tied + 1) / 2, scores)
    few = pairs.sum(axis=-1) < 2
    return {name: np.where(few, np.nan, value) for name, value in found.items()}


def best_of(values: Floats, scores: Floats, k: int) -> Floats:
    """The expected best score of the first k sources, (..., sources) → (...).

    Of g sources at equal value m are drawn: the best of these is the j-th worst of the g with
    probability C(j - 1, m - 1) / C(g, m).
    """
    sure, group, drawn = _first(values, scores, k)
    low = np.where(sure, scores, -np.inf).max(axis=-1, keepdims=True)
    ordered = np.sort(np.where(group, scores, -np.inf), axis=-1)
    of, sources = group.sum(axis=-1, keepdims=True), scores.shape[-1]
    rank = np.arange(1, sources + 1) - (sources - of)
    counts = _comb(sources)
    drawn = np.maximum(drawn, 1)
    shares = counts[np.maximum(rank - 1, 0), drawn - 1] / counts[of, drawn]
    shares = np.where(rank > 0, shares, 0.0)
    best = np.where(shares > 0, np.maximum(ordered, low), 0.0)
    result: Floats = (shares * best).sum(axis=-1)
    return result


def mean_of(values: Floats, scores: Floats, k: int) -> Floats:
    """The expected mean score of the first k sources, (..., sources) → (...)."""
    sure, group, drawn = _first(values, scores, k)
    total = np.where(sure, scores, 0.0).sum(axis=-1)
    of = group.sum(axis=-1)
    level = np.where(group, scores, 0.0).sum(axis=-1) / np.maximum(of, 1)
    many = sure.sum(axis=-1) + drawn[..., 0]
    result: Floats = (total + drawn[..., 0] * level) / np.maximum(many, 1)
    return result


def _mean_of_first(ordered: Floats, k: int) -> Floats:
    """Of scores from the best on, NaN last."""
    first = ordered[..., :k]
    there = ~np.isnan(first)
    result: Floats = np.nansum(first, axis=-1) / np.maximum(there.sum(axis=-1), 1)
    return result


def source_mean(gains: Floats) -> Floats:
    """The mean gain of each source over the other targets, (..., targets, sources) → the same
    shape: what a source is good for, without a look at the target."""
    there = ~np.isnan(gains)
    total = np.nansum(gains, axis=-2, keepdims=True) - np.where(there, gains, 0.0)
    count = there.sum(axis=-2, keepdims=True) - there
    result: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return result


def centred(scores: Floats) -> Floats:
    """Scores less the mean of their target's, (targets, sources, ...): gains where no baseline is
    known."""
    there = ~np.isnan(scores)
    count = np.maximum(there.sum(axis=1, keepdims=True), 1)
    result: Floats = scores - np.nansum(scores, axis=1, keepdims=True) / count
    return result


def noise_floor(scores: Floats, ks: tuple[int, ...] = KS) -> dict[str, Floats]:
    """What the runs themselves come to as a selector: ranked by half of the seeds, judged by the
    other half, the mean over all halvings.

    Args:
        scores: (targets, sources, seeds), two seeds or more.

    Returns:
        Measure → (targets,)
    """
    halves = _halvings(scores.shape[-1])
    ranked = np.moveaxis(scores @ halves.T / halves.sum(axis=1), -1, 0)
    judged = np.moveaxis(scores @ (1 - halves).T / (1 - halves).sum(axis=1), -1, 0)
    return {name: value.mean(axis=0) for name, value in measures(ranked, judged, ks).items()}


def _halvings(seeds: int) -> Floats:
    """Which seeds rank, (halvings, seeds); with an odd number both sizes take turns."""
    sizes = {seeds // 2, seeds - seeds // 2}
    if sum(comb(seeds, size) for size in sizes) <= MOST_HALVINGS:
        chosen = [one for size in sizes for one in itertools.combinations(range(seeds), size)]
    else:
        random = np.random.default_rng(seeds)
        chosen = [
            tuple(random.permutation(seeds)[:size])
            for size in sizes
            for _ in range(MOST_HALVINGS // len(sizes))
        ]
    halves = np.zeros((len(chosen), seeds))
    for row, members in zip(halves, chosen, strict=True):
        row[list(members)] = 1
    return halves


def _first(
    values: Floats, scores: Floats, k: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
    """The sources that are among the first k for sure, those at the value where the k-th is, and
    how many of these are drawn, (..., 1)."""
    pairs = ~np.isnan(scores)
    value = np.where(pairs, np.where(np.isnan(values), -np.inf, values), np.nan)
    many = np.minimum(k, pairs.sum(axis=-1, keepdims=True))
    # What is no pair sorts to the end as NaN does.
    ordered = -np.sort(-value, axis=-1)
    cut = np.take_along_axis(ordered, np.maximum(many - 1, 0), axis=-1)
    sure = pairs & (value > cut)
    return sure, pairs & (value == cut), many - sure.sum(axis=-1, keepdims=True)


@cache
def _comb(most: int) -> Floats:
    """C(n, k) of all n, k up to ``most``, as floats; 0 where k is above n."""
    count = np.arange(most + 1)
    table: Floats = binomial(count[:, None], count[None, :])
    return table


def _places(values: Floats, pairs: NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
    """How many sources are above each, and how many are at its value, itself among them."""
    pairs = ~np.isnan(values) if pairs is None else pairs
    both = pairs[..., None, :] & pairs[..., :, None]
    # [..., i, j]: whether j is above i.
    above = both & (values[..., None, :] > values[..., :, None])
    tied = both & (values[..., None, :] == values[..., :, None])
    return above.sum(axis=-1).astype(float), tied.sum(axis=-1).astype(float)


def _rank_relevance(scores: Floats) -> Floats:
    """n - rank, the best is of rank 1."""
    there = ~np.isnan(scores)
    rank = _places(scores)[0] + 1
    relevance: Floats = np.where(there, there.sum(axis=-1, keepdims=True) - rank, np.nan)
    return relevance


NDCG: dict[str, Callable[[Floats], Floats]] = {
    "ndcg_rank": _rank_relevance,
    "ndcg_percent": lambda scores: scores,
    "ndcg_fraction": lambda scores: scores / 100,
}
"""Name → relevance of scores in 0-100."""


def _ndcg(relevance: Floats, above: Floats, tied: Floats) -> Floats:
    there = ~np.isnan(relevance)
    top = np.where(there, relevance, -np.inf).max(axis=-1, keepdims=True)
    # Both sides are divided by 2^top, which may be large.
    gain = np.where(there, np.exp2(np.where(there, relevance - top, 0.0)) - np.exp2(-top), 0.0)
    sources = relevance.shape[-1]
    summed = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, sources + 2)))])
    begin, end = above.astype(int), (above + tied).astype(int)
    discount = (summed[end] - summed[begin]) / np.maximum(tied, 1)
    ideal = -np.sort(-gain, axis=-1) @ np.diff(summed)
    return _divided((gain * discount).sum(axis=-1), ideal)


def _spearman(places: Floats, scores: Floats) -> Floats:
    """0 where all values are equal, which is what an order by chance comes to; NaN where all
    scores are."""
    there = ~np.isnan(scores)
    above, tied = _places(scores)
    count = np.maximum(there.sum(axis=-1, keepdims=True), 1)
    ranks = [np.where(there, side, 0.0) for side in (places, above + (tied + 1) / 2)]
    x, y = (np.where(there, r - r.sum(axis=-1, keepdims=True) / count, 0.0) for r in ranks)
    together, spread = (x * y).sum(axis=-1), (x * x).sum(axis=-1) * (y * y).sum(axis=-1)
    found = np.divide(together, np.sqrt(spread), out=np.zeros_like(together), where=spread > 0)
    result: Floats = np.where((y * y).sum(axis=-1) > 0, found, np.nan)
    return result


def _per_cent(part: Floats, whole: Floats) -> Floats:
    return 100 * _divided(part, whole)


def _divided(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.full_like(part, np.nan), where=whole > 0)
