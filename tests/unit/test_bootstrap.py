"""Standard errors, intervals and tests, with numbers computed by hand or by simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from simulated_studies import (
    DIALOGUES,
    REGIMES,
    Judge,
    Regime,
    draw_instances,
    heatmap,
    studies,
    trainings,
    welch_satterthwaite,
)
from tasktransfer.stats.bootstrap import (
    Estimate,
    Trainings,
    compute_confidence,
    compute_confidences,
    compute_mean_confidence,
    compute_q_values,
    estimate_delta,
)
from tasktransfer.stats.draws import Units, build_instance_units

T_1, T_4 = 12.706204736432095, 2.7764451051977934
"""97.5 % quantiles of t with 1 and 4 degrees of freedom."""


# --- variance ---------------------------------------------------------------------------------


def runs(scores: Sequence[float], drawn: Any = None, first: int = 0) -> Trainings:
    """Return trainings of consecutive seeds."""
    seeds = tuple(range(first, first + len(scores)))
    return Trainings(seeds, np.array(scores), None if drawn is None else np.array(drawn))


def deltas(values: Sequence[float], drawn: Any = None, instances: int = 0) -> Estimate:
    """Return deltas of runs that exceed their baselines, which are all 0, by these values."""
    nothing = None if drawn is None else np.zeros_like(np.array(drawn))
    baseline = runs([0.0] * len(values), nothing)
    return estimate_delta(
        runs(values, drawn), baseline, build_instance_units(instances) if instances else None
    )


def test_seeds_alone_are_a_t_test() -> None:
    found = deltas([1.0, 3.0])
    assert (found.delta, found.standard_error) == (2.0, 1.0)
    sure = compute_confidence(found)
    assert (sure.low, sure.high) == pytest.approx((2 - T_1, 2 + T_1))
    assert sure.p == pytest.approx(stats.ttest_1samp([1.0, 3.0], 0).pvalue)
    assert sure.degrees == pytest.approx(1)


def test_a_run_and_the_baseline_of_its_seed_are_paired() -> None:
    transfer, baseline = [50.0, 54.0, 61.0], [48.0, 51.0, 60.0]
    paired = estimate_delta(runs(transfer), runs(baseline))
    assert paired.standard_error == pytest.approx(np.std([2.0, 3.0, 1.0], ddof=1) / 3**0.5)
    # The order in which seeds stand does not matter.
    turned = Trainings((2, 1, 0), np.array(baseline[::-1]))
    assert estimate_delta(runs(transfer), turned) == paired


def test_a_method_that_equals_its_baseline_differs_by_nothing_whichever_runs_are_missing() -> None:
    """Seeds vary by ten points, and two of five were run."""
    chance = np.random.default_rng(2)
    scores = [31.0, 12.0, 48.0, 52.0, 45.0]
    drawn = np.array(scores)[:, None] + chance.standard_normal((5, 200))
    units = build_instance_units(40)
    found = estimate_delta(runs(scores[:2], drawn[:2]), runs(scores, drawn), units)
    sure = compute_confidence(found)
    assert (found.delta, found.seeds) == (0.0, 2)
    assert sure.p > 0.99
    # The other way round nothing changes but the sign.
    turned = estimate_delta(runs(scores, drawn), runs(scores[:2], drawn[:2]), units)
    assert turned == found


def test_without_a_shared_seed_there_is_no_difference() -> None:
    for drawn, units in ((None, None), ([[1.0, 3.0], [2.0, 5.0]], build_instance_units(9))):
        for more in (False, True):
            found = estimate_delta(
                runs([50.0, 54.0], drawn),
                runs([80.0, 84.0], drawn, first=7),
                units,
                more_baselines=more,
            )
            sure = compute_confidence(found)
            assert found.seeds == 0
            told = (found.delta, found.standard_error, sure.low, sure.high, sure.p, sure.degrees)
            assert all(math.isnan(value) for value in told)


def test_baselines_count_beside_the_shared_seeds_only_where_they_were_trained_for_it() -> None:
    transfer, baseline = runs([10.0, 14.0]), runs([1.0, 2.0, 3.0, 4.0, 5.0])
    assert estimate_delta(transfer, baseline) == estimate_delta(transfer, runs([1.0, 2.0]))


def test_more_baselines_than_runs() -> None:
    """Two runs and five baselines, two of them with equal seeds: computed by hand."""
    transfer, baseline = runs([10.0, 14.0]), runs([1.0, 2.0, 3.0, 4.0, 5.0])
    found = estimate_delta(transfer, baseline, more_baselines=True)
    assert found.delta == 12 - 3
    # Pairs: 10/2 - 1/5 and 14/2 - 2/5, whose variance is 1.8^2 / 2. Others: 3/25 of 2.5.
    assert found.parts == (pytest.approx((2 * 1.8**2 / 2, 1.0)), pytest.approx((0.3, 4.0)))
    assert found.seeds == 2


def test_one_run_and_many_baselines_are_one_seed() -> None:
    found = estimate_delta(runs([9.0]), runs([1.0, 2.0, 3.0]), more_baselines=True)
    assert found.seeds == 1
    assert math.isnan(compute_confidence(found).low)


@pytest.mark.parametrize("pairing", [0.0, 0.8])
def test_the_variance_of_unequal_seeds_is_right(pairing: float) -> None:
    """Compared with the spread of 4,000 deltas whose seeds correlate."""
    chance = np.random.default_rng(6)
    shared = chance.standard_normal((4000, 12))
    transfer, baseline = (
        pairing**0.5 * shared + (1 - pairing) ** 0.5 * chance.standard_normal((4000, 12))
        for _ in range(2)
    )
    found = [
        estimate_delta(runs(a[:4]), runs(b), more_baselines=True)
        for a, b in zip(transfer, baseline, strict=True)
    ]
    errors = np.mean([one.standard_error**2 for one in found]) ** 0.5
    assert errors == pytest.approx(np.std([one.delta for one in found]), rel=0.04)


def test_what_moves_all_seeds_alike_adds_to_the_seeds() -> None:
    # Means over seeds 1 and 3: variance 2. Seeds: variance 2 over 2 seeds.
    found = deltas([1.0, 3.0], [[0.0, 2.0], [2.0, 4.0]], instances=1000)
    assert found.parts == ((1.0, 1.0), (2.0, 999.0))
    assert found.standard_error == pytest.approx(math.sqrt(3))
    assert found.of_test_set == 2


def test_what_seeds_and_instances_have_in_common_counts_once() -> None:
    # The mean over seeds does not move at all; each seed does, against the other.
    found = deltas([1.0, 3.0], [[0.0, 2.0], [4.0, 2.0]], instances=1000)
    assert found.parts == ((1.0, 1.0), (0.0, 999.0))


def test_the_bias_of_resampling_is_no_variance() -> None:
    moved = np.array([[0.0, 2.0], [2.0, 4.0]])
    biased = moved - np.array([[5.0], [1.0]])
    assert deltas([1.0, 3.0], biased, 99) == deltas([1.0, 3.0], moved, 99)


def test_one_seed_speaks_of_its_test_set_alone() -> None:
    found = deltas([2.0], [[1.0, 3.0]], instances=10)
    assert found.parts == ((2.0, 9.0),)
    assert compute_confidence(found).degrees == pytest.approx(9)


def test_degrees_of_freedom_count_dialogues() -> None:
    units = Units(np.repeat(np.arange(4), 25), "dialogue")
    drawn = np.array([[1.0, 3.0]])
    found = estimate_delta(runs([2.0], drawn), runs([0.0], 0 * drawn), units)
    assert found.parts == ((2.0, 3.0),)


def test_seeds_that_agree_do_so_by_rounding() -> None:
    found = deltas([2.0, 2.0], [[1.0, 3.0], [1.0, 3.0]], instances=50)
    # Steps of 2 points, of which rounding makes 2^2 / 12, over 2 seeds.
    assert found.parts == (pytest.approx((1 / 6, 1.0)), (2.0, 49.0))


def test_one_seed_without_predictions_says_nothing() -> None:
    sure = compute_confidence(deltas([2.0]))
    assert all(math.isnan(value) for value in (sure.low, sure.high, sure.p, sure.degrees))


# --- intervals and tests -------------------------------------------------------------------------


def test_one_part_is_a_plain_t_interval() -> None:
    sure = compute_confidence(Estimate(2.0, ((1.0, 4.0), (0.0, 99.0)), 5))
    assert (sure.low, sure.high) == pytest.approx((2 - T_4, 2 + T_4))
    assert sure.p == pytest.approx(2 * stats.t.sf(2, 4))
    assert sure.degrees == pytest.approx(4)


def test_few_seeds_widen_the_interval_by_their_share() -> None:
    sure = compute_confidence(Estimate(3.0, ((0.5, 4.0), (0.5, 1e9)), 5))
    share, z = 0.5**1.5, 1.959963984540054
    reach = math.sqrt(z**2 + share * (T_4**2 - z**2))
    assert (sure.low, sure.high) == pytest.approx((3 - reach, 3 + reach))
    # At its p the interval ends at 0.
    z, t = stats.norm.isf(sure.p / 2), stats.t.isf(sure.p / 2, 4)
    assert math.sqrt(z**2 + share * (t**2 - z**2)) == pytest.approx(3.0)


def test_p_and_interval_agree() -> None:
    found = [Estimate(delta, ((0.3, 4.0), (0.2, 50.0)), 5) for delta in np.linspace(-3, 3, 61)]
    for sure in compute_confidences(found):
        assert (sure.low <= 0 <= sure.high) == (sure.p >= 0.05)


def test_tiny_p_are_found() -> None:
    sure = compute_confidence(Estimate(20.0, ((1.0, 2000.0),), 1))
    assert sure.p == pytest.approx(2 * stats.t.sf(20, 2000), rel=1e-6)
    assert 0 < compute_confidence(Estimate(90.0, ((1e-6, 1.0), (1e-6, 9.0)), 2)).p < 1e-4


def test_no_variation_is_no_certainty() -> None:
    equal, alike = compute_confidences(
        [Estimate(0.0, ((0.0, 4.0),), 5), Estimate(5.0, ((1e-30, 4.0),), 5)]
    )
    assert (equal.low, equal.high, equal.p) == (0.0, 0.0, 1.0)
    assert math.isnan(alike.low)
    assert alike.p == 2 / 2**5


def test_false_discovery_worked() -> None:
    q = compute_q_values([0.01, np.nan, 0.02, 0.03, 0.5])
    assert q == pytest.approx([0.04, np.nan, 0.04, 0.04, 0.5], nan_ok=True)
    assert np.isnan(compute_q_values([np.nan])).all()


def test_welch_and_satterthwaite_are_the_two_sample_test() -> None:
    transfer, baseline = [50.0, 54.0, 61.0, 47.0], [48.0, 40.0, 45.0]
    parts = tuple(
        (float(np.var(one, ddof=1)) / len(one), len(one) - 1.0) for one in (transfer, baseline)
    )
    delta = float(np.mean(transfer) - np.mean(baseline))
    (sure,) = welch_satterthwaite([Estimate(delta, parts, 3)])
    expected = stats.ttest_ind(transfer, baseline, equal_var=False)
    assert sure.p == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval()
    assert (sure.low, sure.high) == pytest.approx((interval.low, interval.high))


# --- simulated studies (benchmarks/statistics_simulation.py has many more) ------------------------


@pytest.mark.parametrize(
    ("regime", "least"),
    [(replace(regime, dialogues=150), 0.925) for regime in REGIMES[:3]]
    + [(regime, 0.92) for regime in DIALOGUES[4:]],
)
def test_a_planted_effect_is_covered(regime: Regime, least: float) -> None:
    """Of 400 intervals, 95 % is off by 1.1 points; an interval of 90 % or 99 % fails."""
    judge, chance = Judge(regime), np.random.default_rng(3 if regime.dialogues == 150 else 8)
    sure = compute_confidences([judge(one) for one in studies(regime, 400, chance)])
    covered = np.mean([one.low <= 100 * regime.gain <= one.high for one in sure])
    assert least <= covered <= 0.98


def test_a_correlation_within_dialogues_has_the_known_design_effect() -> None:
    """Dialogues have 10 equally hard instances.

    The variance of accuracy is 1 + (10 - 1) r times that of single instances, where r is the
    correlation of correct answers.
    """
    regime = Regime("one", 0.0, 0.0, seeds=1, dialogues=4000, correlation=0.4, difficulty=0.0)
    chance = np.random.default_rng(9)
    test = draw_instances(replace(regime, longest=1, dialogues=40_000), chance)
    test = replace(test, units=Units(np.repeat(np.arange(4000), 10), "dialogue"))
    tallies = trainings(regime, test, False, chance)
    right = tallies[0, :, 0].reshape(4000, 10)
    scatter = np.corrcoef(right.T)
    correlation = (scatter.sum() - 10) / 90
    assert correlation > 0.2
    clustered, alone = (
        Judge(regime, by_instance).trained(test, tallies).resampled for by_instance in (False, True)
    )
    effect = clustered.var() / alone.var()
    # A variance over 1,000 draws is off by 4.5 %, a ratio of two by 6 %.
    assert effect == pytest.approx(1 + 9 * correlation, rel=0.15)


def test_no_effect_is_rarely_marked() -> None:
    regime = Regime("none", 0.1, 1.0, gain=0.0, dialogues=100)
    chance = np.random.default_rng(4)
    p = np.array([heatmap(regime, 5, chance).ravel() for _ in range(15)])
    q = np.array([compute_q_values(row) for row in p])
    assert np.mean(q <= 0.05) <= 0.05
    # The test has to be able to say no: about as many p below 0.05 as there should be.
    assert 0.01 <= np.mean(p <= 0.05) <= 0.08


def test_a_large_effect_is_marked() -> None:
    regime = Regime("large", 0.05, 0.5, gain=0.25, dialogues=100)
    p = heatmap(regime, 4, np.random.default_rng(5), helpful=3)
    assert (compute_q_values(p.ravel()) <= 0.05).mean() > 0.8


def test_the_interval_of_a_mean_ends_where_its_scale_does() -> None:
    far = runs([10.0, 60.0])
    sure = compute_mean_confidence(far, None)
    assert 0 < sure.low < 1
    assert 99 < sure.high < 100
    wide = compute_mean_confidence(far, None, most=np.inf)
    assert (wide.low, wide.high) == (0.0, pytest.approx(35 + T_1 * 25))
    assert sure.p == wide.p


def test_the_interval_of_a_mean_is_of_its_logit() -> None:
    """Computed by hand: 80 of 100 is a logit of log 4, which changes by 1/16 per point."""
    sure = compute_mean_confidence(runs([79.0, 81.0]), None)
    low, high = (1 / (1 + math.exp(-(math.log(4) + side * T_1 / 16))) for side in (-1, 1))
    assert (sure.low, sure.high) == pytest.approx((100 * low, 100 * high))


def test_the_interval_of_a_correlation_is_of_fishers_z() -> None:
    sure = compute_mean_confidence(runs([55.0, 65.0]), None, least=-100)
    error = 0.05 / (1 - 0.6**2)
    low, high = (math.tanh(math.atanh(0.6) + side * T_1 * error) for side in (-1, 1))
    assert (sure.low, sure.high) == pytest.approx((100 * low, 100 * high))
    assert sure.p == pytest.approx(2 * stats.t.sf(math.atanh(0.6) / error, 1))


def test_a_mean_at_the_end_of_its_scale_has_the_plain_interval() -> None:
    units = build_instance_units(9)
    sure = compute_mean_confidence(runs([100.0, 100.0], np.full((2, 9), 100.0)), units)
    assert math.isnan(sure.low)
    below = compute_mean_confidence(runs([0.0, 0.0]), None)
    assert (below.low, below.high) == (0.0, 0.0)
