"""Evaluation of a selector over all targets of a study: mean, interval, and differences.

Targets and seeds are both samples. The variance of a mean over targets has two parts. The first is
the variance over targets, which includes each target's own noise of seeds. The second is the common
effect of seeds on all targets: the jackknife variance of the mean over seeds, minus its expectation
for independent targets (crossed analysis of variance). With one seed the second part is unknown.
The interval is Student's t with Satterthwaite's degrees of freedom. Differences are paired by
target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from tasktransfer.selection.measures import (
    KS,
    compute_measures,
    compute_noise_floor,
    compute_random_at_floor,
    compute_source_mean,
    subtract_target_mean,
)
from tasktransfer.stats.bootstrap import compute_q_values
from tasktransfer.stats.draws import Floats

RANDOM, SOURCE_MEAN = "random", "source_mean"
REFERENCES = (RANDOM, SOURCE_MEAN)
"""References that every selector is compared with."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over targets, its 95 % interval and the two-sided p of 0; NaN if unknown."""

    value: float
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan


@dataclass(frozen=True, slots=True)
class Judgement:
    """A measure of a selector.

    Args:
        selector: name of the selector.
        measure: name of the measure.
        mean: mean over targets.
        to: difference from each reference.
        q: p of each difference, adjusted for all selectors of the table.
        floor: noise floor: the measure of half of the seeds, evaluated by the other half.
        floor_random: the measure of a random ranking, evaluated by the same half as ``floor``.
        targets: number of targets.
        missing: fraction of pairs without a value, which are ranked last.
    """

    selector: str
    measure: str
    mean: Mean
    to: Mapping[str, Mean]
    q: Mapping[str, float]
    floor: float
    floor_random: float
    targets: int
    missing: float


def judge_selectors(
    scores: Floats,
    values: Mapping[str, Floats],
    ks: tuple[int, ...] = KS,
    gains: Floats | None = None,
) -> list[Judgement]:
    """Evaluate each selector by each measure, including ``random`` and ``source_mean``.

    Args:
        scores: scores of the transfers, 0-100, shape (targets, sources, seeds); NaN if there is no
            pair. Pairs with a missing seed are not candidates.
        values: selector → values of shape (targets, sources), or (targets, sources, seeds) if they
            depend on the seed. It may contain ``source_mean``, computed from other targets without
            test scores; otherwise ``source_mean`` is computed from ``gains``.
        ks: values of k for regret.
        gains: gains over the baseline, shape as ``scores``; None for gains over the target's mean.

    Returns:
        The references, then the selectors in their order, each with all measures.
    """
    whole = np.asarray(~np.isnan(scores).any(axis=2, keepdims=True))
    scores = np.where(whole, scores, np.nan)
    given = dict(values)
    of_others = given.pop(SOURCE_MEAN, None)
    if of_others is None:
        of_others = compute_source_means(
            np.where(whole, subtract_target_mean(scores) if gains is None else gains, np.nan)
        )
    selectors = {RANDOM: np.zeros(scores.shape[:2]), SOURCE_MEAN: of_others, **given}
    found = {
        name: compute_measures_without_seeds(value, scores, ks) for name, value in selectors.items()
    }
    floors = _compute_floors(scores, ks) if scores.shape[2] > 1 else {}
    pairs = whole[..., 0]
    result = []
    for name, by_measure in found.items():
        lacking = _compute_mean_over_seeds(selectors[name])[pairs]
        missing = float(np.isnan(lacking).mean()) if lacking.size else np.nan
        for measure, drawn in by_measure.items():
            differences = {
                other: compute_mean_over_targets(drawn - found[other][measure])
                for other in REFERENCES
                if other != name
            }
            result.append(
                Judgement(
                    *(name, measure, compute_mean_over_targets(drawn), differences, {}),
                    *floors.get(measure, (np.nan, np.nan)),
                    int(np.isfinite(drawn[0]).sum()),
                    missing,
                )
            )
    return _add_q_values(result)


def _compute_floors(scores: Floats, ks: tuple[int, ...]) -> dict[str, tuple[float, float]]:
    """Return each measure's noise floor, and the random ranking that is comparable with it."""
    floors, random = compute_noise_floor(scores, ks), compute_random_at_floor(scores, ks)
    return {
        name: (_compute_finite_mean(floor), _compute_finite_mean(random[name]))
        for name, floor in floors.items()
    }


def compute_mean_over_targets(drawn: Floats) -> Mean:
    """Compute the mean of a measure over targets, with its interval.

    Args:
        drawn: values with all seeds, then without each seed, shape (1 + seeds, targets), or (1,
            targets) for one seed. Targets with NaN are left out.
    """
    drawn = drawn[:, np.isfinite(drawn).all(axis=0)]
    targets, seeds = drawn.shape[1], len(drawn) - 1
    if targets == 0:
        return Mean(np.nan)
    value = float(drawn[0].mean())
    if targets < 2:
        return Mean(value)
    variance = of_targets = float(drawn[0].var(ddof=1)) / targets
    degrees = float(targets - 1)
    if seeds > 1:
        shared = drawn[1:].mean(axis=1, keepdims=True)
        moves = drawn[1:] - drawn[1:].mean(axis=0) - shared + shared.mean()
        own = float(np.sum(_compute_jackknife_variance(moves))) / (targets * (targets - 1))
        of_seeds = max(0.0, float(_compute_jackknife_variance(shared)[0]) - own)
        variance += of_seeds
        if variance > 0:
            inverse = of_targets**2 / (targets - 1) + of_seeds**2 / (seeds - 1)
            degrees = variance**2 / inverse
    if variance < 1e-18:
        return Mean(value)
    half = float(special.stdtrit(degrees, 0.975)) * variance**0.5
    p = float(2 * special.stdtr(degrees, -abs(value) / variance**0.5))
    return Mean(value, value - half, value + half, p)


def _compute_jackknife_variance(without: Floats) -> Floats:
    """Compute the jackknife variance from leave-one-seed-out values, (seeds, ...) → (...)."""
    seeds = len(without)
    result: Floats = (seeds - 1) / seeds * np.square(without - without.mean(axis=0)).sum(axis=0)
    return result


def compute_measures_without_seeds(
    values: Floats, scores: Floats, ks: tuple[int, ...] = KS
) -> dict[str, Floats]:
    """Compute measures with all seeds, and with each seed left out in turn.

    Args:
        values: shape (..., targets, sources), or with seeds as ``scores``.
        scores: shape (..., targets, sources, seeds).
        ks: values of k for regret.

    Returns:
        Measure → array (1 + seeds, ..., targets), see ``compute_mean_over_targets``.
    """
    seeds = scores.shape[-1]
    kept = [list(range(seeds))]
    if seeds > 1:
        kept += [[seed for seed in range(seeds) if seed != left] for left in range(seeds)]
    by_seed = values.ndim == scores.ndim
    return compute_measures(
        np.stack(
            [_compute_mean_over_seeds(values[..., some]) if by_seed else values for some in kept]
        ),
        np.stack([scores[..., some].mean(axis=-1) for some in kept]),
        ks,
    )


def compute_source_means(gains: Floats) -> Floats:
    """Compute ``source_mean`` for each seed separately, shape (targets, sources, seeds)."""
    return np.stack(
        [compute_source_mean(gains[..., seed]) for seed in range(gains.shape[2])], axis=-1
    )


def _compute_mean_over_seeds(values: Floats) -> Floats:
    """Average an array (..., targets, sources, seeds) over available seeds."""
    if values.ndim == 2:
        return values
    there = ~np.isnan(values)
    count = there.sum(axis=-1)
    return np.where(count > 0, np.nansum(values, axis=-1) / np.maximum(count, 1), np.nan)


def _compute_finite_mean(values: Floats) -> float:
    there = values[np.isfinite(values)]
    return float(there.mean()) if there.size else np.nan


def _add_q_values(rows: Sequence[Judgement]) -> list[Judgement]:
    """Add q for each measure and reference, adjusted over all selectors."""
    q: list[dict[str, float]] = [{} for _ in rows]
    for measure in dict.fromkeys(row.measure for row in rows):
        for other in REFERENCES:
            places = [n for n, row in enumerate(rows) if row.measure == measure and other in row.to]
            adjusted = compute_q_values([rows[n].to[other].p for n in places])
            for n, value in zip(places, adjusted, strict=True):
                q[n][other] = float(value)
    return [replace(row, q=of) for row, of in zip(rows, q, strict=True)]
