"""Standard errors, intervals and tests, with numbers worked by hand or by simulation."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

from simulated_studies import REGIMES, Regime, heatmap, studies
from tasktransfer import metrics
from tasktransfer.datasets import get_task
from tasktransfer.stats import bootstrap
from tasktransfer.stats.bootstrap import Estimate, confidence, confidences, estimate
from tasktransfer.stats.false_discovery import false_discovery

CHOICE = get_task("DailyDialog", "dialogue_reasoning_multiple_choice_span_selection")
T_1, T_4 = 12.706204736432095, 2.7764451051977934
"""97.5 % quantiles of t with 1 and 4 degrees of freedom."""


# --- variance ---------------------------------------------------------------------------------


def test_seeds_alone_are_a_t_test() -> None:
    found = estimate([1.0, 3.0], None)
    assert (found.delta, found.standard_error) == (2.0, 1.0)
    sure = confidence(found)
    assert (sure.low, sure.high) == pytest.approx((2 - T_1, 2 + T_1))
    assert sure.p == pytest.approx(stats.ttest_1samp([1.0, 3.0], 0).pvalue)
    assert sure.degrees == pytest.approx(1)


def test_what_moves_all_seeds_alike_adds_to_the_seeds() -> None:
    # Means over seeds 1 and 3: variance 2. Seeds: variance 2 over 2 seeds.
    found = estimate([1.0, 3.0], np.array([[0.0, 2.0], [2.0, 4.0]]), instances=1000)
    assert found.parts == ((1.0, 1.0), (2.0, 999.0))
    assert found.standard_error == pytest.approx(math.sqrt(3))


def test_what_seeds_and_instances_have_in_common_counts_once() -> None:
    # The mean over seeds does not move at all; each seed does, against the other.
    found = estimate([1.0, 3.0], np.array([[0.0, 2.0], [4.0, 2.0]]), instances=1000)
    assert found.parts == ((1.0, 1.0), (0.0, 999.0))


def test_the_bias_of_resampling_is_no_variance() -> None:
    moved = np.array([[0.0, 2.0], [2.0, 4.0]])
    biased = moved - np.array([[5.0], [1.0]])
    assert estimate([1.0, 3.0], biased, 99) == estimate([1.0, 3.0], moved, 99)


def test_one_seed_speaks_of_its_instances_alone() -> None:
    found = estimate([2.0], np.array([[1.0, 3.0]]), instances=10)
    assert found.parts == ((2.0, 9.0),)
    assert confidence(found).degrees == pytest.approx(9)


def test_seeds_that_agree_do_so_by_rounding() -> None:
    found = estimate([2.0, 2.0], np.array([[1.0, 3.0], [1.0, 3.0]]), instances=50)
    # Steps of 2 points, of which rounding makes 2^2 / 12, over 2 seeds.
    assert found.parts == (pytest.approx((1 / 6, 1.0)), (2.0, 49.0))


def test_one_seed_without_predictions_says_nothing() -> None:
    sure = confidence(estimate([2.0], None))
    assert all(math.isnan(value) for value in (sure.low, sure.high, sure.p, sure.degrees))


def test_resampled_accuracy_has_the_textbook_standard_error() -> None:
    chance = np.random.default_rng(0)
    right = chance.random((2, 500)) < [[0.6], [0.5]]
    weights = bootstrap.instance_weights("DailyDialog", CHOICE.name, 500)
    tallies = np.stack([right, np.ones_like(right)], axis=2).astype(float)
    scores = bootstrap.resampled_scores(tallies, weights, partial(metrics.score_of_sums, CHOICE))
    assert scores.shape == (2, bootstrap.RESAMPLES)
    single = bootstrap.resampled_scores(tallies[0], weights, partial(metrics.score_of_sums, CHOICE))
    assert single == pytest.approx(scores[0])
    differences = 100 * (right[0].astype(float) - right[1])
    found = estimate([differences.mean()], scores[:1] - scores[1:], 500)
    assert found.standard_error == pytest.approx(differences.std() / 500**0.5, rel=0.07)


def test_draws_depend_on_the_test_set_alone() -> None:
    weights = bootstrap.instance_weights("Friends", "question_answering", 70)
    assert weights.shape == (bootstrap.RESAMPLES, 70)
    assert (weights.sum(axis=1) == 70).all()
    assert (weights == bootstrap.instance_weights("Friends", "question_answering", 70)).all()
    other = bootstrap.instance_weights("Friends", "reading_comprehension", 70)
    assert (weights != other).any()


# --- intervals and tests -------------------------------------------------------------------------


def test_one_part_is_a_plain_t_interval() -> None:
    sure = confidence(Estimate(2.0, ((1.0, 4.0), (0.0, 99.0)), 5))
    assert (sure.low, sure.high) == pytest.approx((2 - T_4, 2 + T_4))
    assert sure.p == pytest.approx(2 * stats.t.sf(2, 4))
    assert sure.degrees == pytest.approx(4)


def test_few_seeds_widen_the_interval_by_their_share() -> None:
    sure = confidence(Estimate(3.0, ((0.5, 4.0), (0.5, 1e9)), 5))
    share, z = 0.5**1.5, 1.959963984540054
    reach = math.sqrt(z**2 + share * (T_4**2 - z**2))
    assert (sure.low, sure.high) == pytest.approx((3 - reach, 3 + reach))
    # At its p the interval ends at 0.
    z, t = stats.norm.isf(sure.p / 2), stats.t.isf(sure.p / 2, 4)
    assert math.sqrt(z**2 + share * (t**2 - z**2)) == pytest.approx(3.0)


def test_p_and_interval_agree() -> None:
    found = [Estimate(delta, ((0.3, 4.0), (0.2, 50.0)), 5) for delta in np.linspace(-3, 3, 61)]
    for sure in confidences(found):
        assert (sure.low <= 0 <= sure.high) == (sure.p >= 0.05)


def test_tiny_p_are_found() -> None:
    sure = confidence(Estimate(20.0, ((1.0, 2000.0),), 1))
    assert sure.p == pytest.approx(2 * stats.t.sf(20, 2000), rel=1e-6)
    assert 0 < confidence(Estimate(90.0, ((1e-6, 1.0), (1e-6, 9.0)), 2)).p < 1e-4


def test_no_variation_is_no_certainty() -> None:
    equal, alike = confidences([Estimate(0.0, ((0.0, 4.0),), 5), Estimate(5.0, ((1e-30, 4.0),), 5)])
    assert (equal.low, equal.high, equal.p) == (0.0, 0.0, 1.0)
    assert math.isnan(alike.low)
    assert alike.p == 2 / 2**5


def test_false_discovery_worked() -> None:
    q = false_discovery([0.01, np.nan, 0.02, 0.03, 0.5])
    assert q == pytest.approx([0.04, np.nan, 0.04, 0.04, 0.5], nan_ok=True)
    assert np.isnan(false_discovery([np.nan])).all()


# --- simulated studies (benchmarks/statistics_simulation.py has many more) ------------------------

SMALL = {regime.name: regime for regime in REGIMES}


@pytest.mark.parametrize("name", ["seeds dominate", "instances dominate", "both"])
def test_a_planted_effect_is_covered(name: str) -> None:
    regime = replace(SMALL[name], instances=150)
    sure = confidences(list(studies(regime, 400, np.random.default_rng(3))))
    true = 100 * regime.gain
    covered = np.mean([one.low <= true <= one.high for one in sure])
    # 400 studies: 95 % is off by 1.1 points; an interval of 90 % or 99 % fails.
    assert 0.925 <= covered <= 0.98


def test_no_effect_is_rarely_marked() -> None:
    regime = Regime("none", 0.1, 1.0, gain=0.0, instances=100)
    chance = np.random.default_rng(4)
    p = np.array([heatmap(regime, 5, chance) for _ in range(15)])
    q = np.array([false_discovery(row) for row in p])
    assert np.mean(q <= 0.05) <= 0.05
    # The test has to be able to say no: about as many p below 0.05 as there should be.
    assert 0.01 <= np.mean(p <= 0.05) <= 0.08


def test_a_large_effect_is_marked() -> None:
    regime = Regime("large", 0.05, 0.5, gain=0.25, instances=100)
    p = heatmap(regime, 4, np.random.default_rng(5))
    assert (false_discovery(p) <= 0.05).mean() > 0.8


def test_estimates_go_through_the_official_score() -> None:
    """Macro-F1 of the resampled instances, and not a mean of instance scores."""
    task = get_task("DailyDialog", "dialogue_nli")
    golds = [("entailment",)] * 9 + [("contradiction",)]
    each = metrics.tally(task, [("entailment",)] * 10, golds)
    weights = np.ones((1, 10), np.float32)
    weights[0, 9] = 0
    found = bootstrap.resampled_scores(each, weights, partial(metrics.score_of_sums, task))
    wanted = metrics.evaluate(task, [("entailment",)] * 9, golds[:9])
    assert found == pytest.approx([metrics.score(task, wanted)])
