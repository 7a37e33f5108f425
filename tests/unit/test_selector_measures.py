"""Regret, NDCG and Spearman of selectors: small cases by hand, chance by simulation.

Also simulated studies of pure noise and of a known effect.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tasktransfer.selection.judging import (
    compute_mean_over_targets,
    compute_measures_without_seeds,
    judge_selectors,
)
from tasktransfer.selection.measures import (
    compute_measures,
    compute_noise_floor,
    compute_random_at_floor,
    compute_source_mean,
)

SCORES = np.array([50.0, 60.0, 58.0, 40.0])


def of(values: list[float]) -> dict[str, float]:
    return {
        name: float(value) for name, value in compute_measures(np.array(values), SCORES).items()
    }


def test_regret_of_a_ranking_by_hand() -> None:
    found = of([4, 1, 3, 2])  # first: 50, 58, 40
    assert found["regret@1"] == 10
    assert found["regret@1%"] == pytest.approx(100 * 10 / 60)
    assert found["regret@3"] == 2
    assert found["mean_regret@3"] == pytest.approx((60 + 58 + 50) / 3 - (50 + 58 + 40) / 3)
    assert found["mean_regret@3%"] == pytest.approx(100 * (168 - 148) / 168)
    assert found["spearman"] == pytest.approx(stats.spearmanr([4, 1, 3, 2], SCORES).statistic)


def test_the_three_ndcgs_by_hand() -> None:
    order = [50.0, 58.0, 40.0, 60.0]
    relevance = {
        "ndcg_rank": ([1, 2, 0, 3], [3, 2, 1, 0]),
        "ndcg_percent": (order, [60, 58, 50, 40]),
        "ndcg_fraction": ([one / 100 for one in order], [0.6, 0.58, 0.5, 0.4]),
    }
    found = of([4, 1, 3, 2])
    for name, (ours, ideal) in relevance.items():
        gains = [
            sum((2**rel - 1) / math.log2(place + 2) for place, rel in enumerate(one))
            for one in (ours, ideal)
        ]
        assert found[name] == pytest.approx(gains[0] / gains[1]), name


def test_the_truth_has_no_regret_and_missing_values_come_last() -> None:
    best = of(list(SCORES))
    assert [best[name] for name in ("regret@1", "regret@3", "mean_regret@3")] == [0, 0, 0]
    assert all(best[name] == pytest.approx(1) for name in best if name.startswith("ndcg"))
    assert of([1, math.nan, 2, 3])["regret@3"] == of([1, 0, 2, 3])["regret@3"] == 2


def test_equal_values_are_the_mean_over_all_orders() -> None:
    """One clear first and three ties: every order of the ties has equal weight."""
    orders = [of([9, *one]) for one in itertools.permutations([1.0, 2.0, 3.0])]
    tied = of([9, 1, 1, 1])
    for name in tied:
        if name != "spearman":  # a correlation of mean ranks is not the mean of correlations
            assert tied[name] == pytest.approx(np.mean([one[name] for one in orders])), name


def test_random_in_closed_form_is_what_simulation_gives() -> None:
    generator = np.random.default_rng(1)
    scores = generator.uniform(30, 80, 9)
    scores[4] = np.nan
    drawn = compute_measures(generator.random((40_000, 9)), scores)
    exact = compute_measures(np.zeros(9), scores)
    for name, value in exact.items():
        error = drawn[name].std() / 200
        assert float(value) == pytest.approx(drawn[name].mean(), abs=4 * error), name


def test_source_mean_leaves_the_target_out() -> None:
    gains = np.array([[np.nan, 1.0, 2.0], [3.0, np.nan, 4.0], [5.0, 7.0, np.nan]])
    expected = [[np.nan, 7, 4], [5, np.nan, 2], [3, 1, np.nan]]
    values = compute_source_mean(gains)
    there = ~np.isnan(gains)
    assert np.array_equal(values[there], np.array(expected)[there])


def test_the_variance_of_a_mean_is_that_of_the_crossed_analysis() -> None:
    """For a linear measure the two parts are mean squares divided by their counts."""
    grid = np.random.default_rng(2).normal(size=(6, 5)) + np.arange(5) * 3  # targets × seeds
    drawn = np.stack([grid.mean(1), *(np.delete(grid, s, 1).mean(1) for s in range(5))])
    residual = grid - grid.mean(0) - grid.mean(1)[:, None] + grid.mean()
    noise = (residual**2).sum() / 20
    expected = grid.mean(1).var(ddof=1) / 6 + grid.mean(0).var(ddof=1) / 5 - noise / 30
    of_targets = grid.mean(1).var(ddof=1) / 6
    of_seeds = expected - of_targets
    degrees = expected**2 / (of_targets**2 / 5 + of_seeds**2 / 4)
    mean = compute_mean_over_targets(drawn)
    assert mean.high - mean.value == pytest.approx(stats.t.isf(0.025, degrees) * expected**0.5)


def simulated(generator: np.random.Generator, studies: int) -> tuple[np.ndarray, np.ndarray]:
    """Return true scores and those of five seeds: 17 targets, 16 other sources."""
    truth = (
        50 + generator.normal(0, 4, (studies, 17, 17)) + generator.normal(0, 8, (studies, 17, 1))
    )
    truth[:, np.arange(17), np.arange(17)] = np.nan
    return truth, truth[..., None] + generator.normal(0, 2, (studies, 17, 17, 5))


def test_selectors_that_are_noise_are_not_told_from_random() -> None:
    """In 93 to 97 % of 500 studies each, at k = 1 and 3."""
    generator = np.random.default_rng(34)
    _, scores = simulated(generator, 500)
    chance = compute_measures_without_seeds(np.zeros(scores.shape[:3]), scores, (1, 3))
    for _ in range(2):
        noise = compute_measures_without_seeds(generator.random(scores.shape[:3]), scores, (1, 3))
        for measure in ("regret@1", "regret@3", "mean_regret@3"):
            differences = np.moveaxis(noise[measure] - chance[measure], 1, 0)
            kept = np.mean([compute_mean_over_targets(study).p > 0.05 for study in differences])
            assert 0.93 <= kept <= 0.97, (measure, kept)


def told_from_random(of_a_source: float) -> float:
    """The share of 100 studies in which noise, one value a source, is told from random.

    Args:
        of_a_source: standard deviation of what sources give to all targets; of a pair it is 4.
    """
    generator = np.random.default_rng(35)
    _, scores = simulated(generator, 100)
    scores = scores + generator.normal(0, of_a_source, (100, 1, 17, 1))
    values = np.broadcast_to(generator.random((100, 1, 17)), scores.shape[:3])
    noise, chance = (
        compute_measures_without_seeds(v, scores, (1,)) for v in (values, np.zeros(values.shape))
    )
    differences = np.moveaxis(noise["regret@1"] - chance["regret@1"], 1, 0)
    return float(np.mean([compute_mean_over_targets(study).p <= 0.05 for study in differences]))


def test_an_interval_is_for_the_sources_at_hand() -> None:
    """A selector with one value per source picks one source for all targets.

    If sources differ in general, the result depends on that source (docs/selection.md).
    """
    assert told_from_random(0) <= 0.1
    assert 0.65 <= told_from_random(8) <= 0.85


def test_the_truth_is_at_or_below_the_floor() -> None:
    truth, scores = simulated(np.random.default_rng(5), 40)
    for known, seen in zip(truth, scores, strict=True):
        row = next(
            row for row in judge_selectors(seen, {"truth": known}) if row.selector == "truth"
        )
        assert row.measure == "regret@1"
        assert row.mean.value <= row.floor
    floor = compute_noise_floor(seen)
    assert floor["regret@1"].mean() == pytest.approx(row.floor)


def test_random_is_compared_with_the_floor_by_as_many_seeds() -> None:
    _, (scores, *_) = simulated(np.random.default_rng(5), 1)
    pair = scores[..., :2]
    found = compute_random_at_floor(pair, (1,))["regret@1"]
    of_seeds = np.nanmax(pair, axis=1) - np.nanmean(pair, axis=1)
    assert found == pytest.approx(of_seeds.mean(axis=1))
    random = next(row for row in judge_selectors(pair, {}) if row.selector == "random")
    assert random.floor_random == pytest.approx(found.mean())
    assert random.floor_random > random.mean.value > random.floor


def test_one_target_and_one_seed_have_no_interval() -> None:
    rows = judge_selectors(SCORES[None, :, None], {"x": np.arange(4.0)[None]})
    row = next(row for row in rows if row.selector == "x")
    assert math.isnan(row.mean.low)
    assert math.isnan(row.floor) and math.isnan(row.floor_random)
    assert math.isnan(row.to["random"].p)


def test_pairs_that_lack_a_seed_are_no_candidates() -> None:
    scores = np.array([[[60.0, np.nan], [50, 50], [40, 40]]] * 2)
    row = next(
        row
        for row in judge_selectors(scores, {"x": np.array([[1.0, 3, 2]] * 2)})
        if row.selector == "x"
    )
    assert row.mean.value == 0
