"""Measures of a ranking of sources: regret, NDCG, Spearman, and the noise floor of seeds.

A selector gives each source of a target a value, and higher is better. It is evaluated by the
scores of the finished transfers. Sources with equal values are in random order, and every measure
is its expectation in closed form; ``random`` is the selector with equal values. Missing values are
ranked last. Regret is in points or percent. Its variants have different names, because papers use
one name for different measures:

``regret@k``            best of k: max over sources - max over the selector's first k (Poth 2021,
                        Lin 2024, Schulte 2024); ``%``: divided by the former
``mean_regret@k``       mean of k: the mean of the best k - the mean of the selector's first k
                        (TaskWeb 2023); ``%`` likewise
``ndcg_rank``           gain 2^rel - 1 with rel = n - rank (TaskWeb)
``ndcg_percent``        with rel = the score in 0-100; the best source dominates (Schulte)
``ndcg_fraction``       with rel = the score in 0-1; no source dominates (Lin)
``spearman``            correlation of values and scores over sources
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb as binomial

from tasktransfer.stats.draws import Floats

KS = (1, 3)
MOST_HALVINGS = 300
"""Maximum number of halvings of the seeds: all for up to 10 seeds, random ones for more."""
PERCENT = "%"
REGRET, MEAN_REGRET, SPEARMAN = "regret@", "mean_regret@", "spearman"


def compute_measures(values: Floats, scores: Floats, ks: tuple[int, ...] = KS) -> dict[str, Floats]:
    """Compute every measure for every target.

    Args:
        values: a selector's values, shape (..., targets, sources); NaN for missing values, which
            are ranked last.
        scores: scores of the transfers, 0-100, same shape; NaN if there is no pair. Either array
            may be broadcast.
        ks: values of k for regret.

    Returns:
        Measure → array (..., targets); NaN if a target has fewer than two sources, or if the
        measure is undefined.
    """
    values, scores = np.broadcast_arrays(np.asarray(values, float), np.asarray(scores, float))
    pairs = ~np.isnan(scores)
    ranked = np.where(pairs & ~np.isnan(values), values, -np.inf)
    top = -np.sort(-scores, axis=-1)
    found: dict[str, Floats] = {}
    for k in ks:
        best, chosen = top[..., 0], compute_expected_best(ranked, scores, k)
        found[f"{REGRET}{k}"] = best - chosen
        found[f"{REGRET}{k}{PERCENT}"] = _compute_percent(best - chosen, best)
        best, chosen = _compute_first_mean(top, k), compute_expected_mean(ranked, scores, k)
        found[f"{MEAN_REGRET}{k}"] = best - chosen
        found[f"{MEAN_REGRET}{k}{PERCENT}"] = _compute_percent(best - chosen, best)
    above, tied = _count_places(ranked, pairs)
    for name, relevance in NDCG.items():
        found[name] = _compute_ndcg(relevance(scores), above, tied)
    found[SPEARMAN] = _compute_spearman(above + (tied + 1) / 2, scores)
    few = pairs.sum(axis=-1) < 2
    return {name: np.where(few, np.nan, value) for name, value in found.items()}


def compute_expected_best(values: Floats, scores: Floats, k: int) -> Floats:
    """Compute the expected maximum score of the first k sources, (..., sources) → (...).

    If m of g sources with the same value are sampled, the best of them is the j-th worst of the g
    with probability C(j - 1, m - 1) / C(g, m).
    """
    sure, group, drawn = _select_first_sources(values, scores, k)
    low = np.where(sure, scores, -np.inf).max(axis=-1, keepdims=True)
    ordered = np.sort(np.where(group, scores, -np.inf), axis=-1)
    of, sources = group.sum(axis=-1, keepdims=True), scores.shape[-1]
    rank = np.arange(1, sources + 1) - (sources - of)
    counts = _count_combinations(sources)
    drawn = np.maximum(drawn, 1)
    shares = counts[np.maximum(rank - 1, 0), drawn - 1] / counts[of, drawn]
    shares = np.where(rank > 0, shares, 0.0)
    best = np.where(shares > 0, np.maximum(ordered, low), 0.0)
    result: Floats = (shares * best).sum(axis=-1)
    return result


def compute_expected_mean(values: Floats, scores: Floats, k: int) -> Floats:
    """Compute the expected mean score of the first k sources, (..., sources) → (...)."""
    sure, group, drawn = _select_first_sources(values, scores, k)
    total = np.where(sure, scores, 0.0).sum(axis=-1)
    of = group.sum(axis=-1)
    level = np.where(group, scores, 0.0).sum(axis=-1) / np.maximum(of, 1)
    many = sure.sum(axis=-1) + drawn[..., 0]
    result: Floats = (total + drawn[..., 0] * level) / np.maximum(many, 1)
    return result


def _compute_first_mean(ordered: Floats, k: int) -> Floats:
    """Compute the mean of the first k scores, given in descending order with NaN last."""
    first = ordered[..., :k]
    there = ~np.isnan(first)
    result: Floats = np.nansum(first, axis=-1) / np.maximum(there.sum(axis=-1), 1)
    return result


def compute_source_mean(gains: Floats) -> Floats:
    """Compute each source's mean gain over the other targets, shape (..., targets, sources).

    It ranks sources without using scores on the target.
    """
    there = ~np.isnan(gains)
    total = np.nansum(gains, axis=-2, keepdims=True) - np.where(there, gains, 0.0)
    count = there.sum(axis=-2, keepdims=True) - there
    result: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return result


def subtract_target_mean(scores: Floats) -> Floats:
    """Subtract the target's mean from scores of shape (targets, sources, ...).

    These are the gains if the baseline is unknown.
    """
    there = ~np.isnan(scores)
    count = np.maximum(there.sum(axis=1, keepdims=True), 1)
    result: Floats = scores - np.nansum(scores, axis=1, keepdims=True) / count
    return result


def compute_noise_floor(scores: Floats, ks: tuple[int, ...] = KS) -> dict[str, Floats]:
    """Compute the regret of ranking with half of the seeds and evaluating with the others.

    The result is the mean over all halvings.

    Args:
        scores: shape (targets, sources, seeds), with at least two seeds.
        ks: values of k for regret.

    Returns:
        Measure → array (targets,).
    """
    return _average_halvings(*_halve_seeds(scores), ks)


def compute_random_at_floor(scores: Floats, ks: tuple[int, ...] = KS) -> dict[str, Floats]:
    """Compute the measures of a random ranking, evaluated with as many seeds as the noise floor.

    The noise floor can be compared with this ranking, but not with rankings that are evaluated with
    all seeds. With fewer seeds, the best source looks better than it is, so every regret is larger.

    Args:
        scores: shape (targets, sources, seeds), with at least two seeds.
        ks: values of k for regret.

    Returns:
        Measure → array (targets,).
    """
    _, judged = _halve_seeds(scores)
    return _average_halvings(np.zeros_like(judged), judged, ks)


def _average_halvings(ranked: Floats, judged: Floats, ks: tuple[int, ...]) -> dict[str, Floats]:
    """Return the mean of every measure over halvings of the seeds, each (targets,)."""
    measures = compute_measures(ranked, judged, ks)
    return {name: value.mean(axis=0) for name, value in measures.items()}


def _halve_seeds(scores: Floats) -> tuple[Floats, Floats]:
    """Return the mean scores of both halves of the seeds, (halvings, targets, sources) each."""
    halves = _list_halvings(scores.shape[-1])
    first = np.moveaxis(scores @ halves.T / halves.sum(axis=1), -1, 0)
    second = np.moveaxis(scores @ (1 - halves).T / (1 - halves).sum(axis=1), -1, 0)
    return first, second


def _list_halvings(seeds: int) -> Floats:
    """Return the seeds for ranking in each division into halves, shape (halvings, seeds).

    With an odd number of seeds, both possible sizes are included.
    """
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


def _select_first_sources(
    values: Floats, scores: Floats, k: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
    """Return the first k sources, keeping ties at the k-th value separate.

    Returns:
        Sources above the k-th value, sources at the k-th value, and the number of these that are
        sampled, shape (..., 1).
    """
    pairs = ~np.isnan(scores)
    value = np.where(pairs, np.where(np.isnan(values), -np.inf, values), np.nan)
    many = np.minimum(k, pairs.sum(axis=-1, keepdims=True))
    # Sources without a pair are NaN, which sorts last.
    ordered = -np.sort(-value, axis=-1)
    cut = np.take_along_axis(ordered, np.maximum(many - 1, 0), axis=-1)
    sure = pairs & (value > cut)
    return sure, pairs & (value == cut), many - sure.sum(axis=-1, keepdims=True)


@cache
def _count_combinations(most: int) -> Floats:
    """Compute C(n, k) for all n, k up to ``most`` as floats (0 for k > n)."""
    count = np.arange(most + 1)
    table: Floats = binomial(count[:, None], count[None, :])
    return table


def _count_places(values: Floats, pairs: NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
    """Count, for each source, the sources with a higher and with an equal value.

    The source itself counts among the sources with the same value.
    """
    pairs = ~np.isnan(values) if pairs is None else pairs
    both = pairs[..., None, :] & pairs[..., :, None]
    # [..., i, j] is true if j is above i.
    above = both & (values[..., None, :] > values[..., :, None])
    tied = both & (values[..., None, :] == values[..., :, None])
    return above.sum(axis=-1).astype(float), tied.sum(axis=-1).astype(float)


def _compute_rank_relevance(scores: Floats) -> Floats:
    """Return the relevance n - rank of each source, where the best source has rank 1."""
    there = ~np.isnan(scores)
    rank = _count_places(scores)[0] + 1
    relevance: Floats = np.where(there, there.sum(axis=-1, keepdims=True) - rank, np.nan)
    return relevance


NDCG: dict[str, Callable[[Floats], Floats]] = {
    "ndcg_rank": _compute_rank_relevance,
    "ndcg_percent": lambda scores: scores,
    "ndcg_fraction": lambda scores: scores / 100,
}
"""Name → function from scores in 0-100 to their relevance."""


def _compute_ndcg(relevance: Floats, above: Floats, tied: Floats) -> Floats:
    there = ~np.isnan(relevance)
    top = np.where(there, relevance, -np.inf).max(axis=-1, keepdims=True)
    # Both sides are divided by 2^top, which may be large.
    gain = np.where(there, np.exp2(np.where(there, relevance - top, 0.0)) - np.exp2(-top), 0.0)
    sources = relevance.shape[-1]
    summed = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, sources + 2)))])
    begin, end = above.astype(int), (above + tied).astype(int)
    discount = (summed[end] - summed[begin]) / np.maximum(tied, 1)
    ideal = -np.sort(-gain, axis=-1) @ np.diff(summed)
    return _compute_ratio((gain * discount).sum(axis=-1), ideal)


def _compute_spearman(places: Floats, scores: Floats) -> Floats:
    """Compute Spearman's correlation of places and scores.

    It is 0 if all values are the same, as expected for a random order, and NaN if all scores
    are the same.
    """
    there = ~np.isnan(scores)
    above, tied = _count_places(scores)
    count = np.maximum(there.sum(axis=-1, keepdims=True), 1)
    ranks = [np.where(there, side, 0.0) for side in (places, above + (tied + 1) / 2)]
    x, y = (np.where(there, r - r.sum(axis=-1, keepdims=True) / count, 0.0) for r in ranks)
    together, spread = (x * y).sum(axis=-1), (x * x).sum(axis=-1) * (y * y).sum(axis=-1)
    found = np.divide(together, np.sqrt(spread), out=np.zeros_like(together), where=spread > 0)
    result: Floats = np.where((y * y).sum(axis=-1) > 0, found, np.nan)
    return result


def _compute_percent(part: Floats, whole: Floats) -> Floats:
    return 100 * _compute_ratio(part, whole)


def _compute_ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.full_like(part, np.nan), where=whole > 0)
