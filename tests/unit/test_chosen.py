"""The best of several, judged by what did not choose it."""

from __future__ import annotations

import numpy as np
import pytest

from tasktransfer.stats import chosen
from tasktransfer.stats.resampling import Floats

STUDIES, TARGETS, SOURCES, SEEDS = 500, 10, 9, 5


def no_effect(seed: int) -> Floats:
    """(studies, targets, sources, seeds) deltas without any effect; the sources of a target share
    its baselines."""
    generator = np.random.default_rng(seed)
    runs = generator.standard_normal((STUDIES, TARGETS, SOURCES, SEEDS))
    return runs - generator.standard_normal((STUDIES, TARGETS, 1, SEEDS))


def test_without_effect_the_held_out_interval_holds_0_in_93_to_97_of_100_studies() -> None:
    deltas = no_effect(0)
    values = chosen.held_out(deltas).mean(axis=(1, 2))
    seeds = np.full(TARGETS, SEEDS)
    widths = [
        chosen.half_width(np.array([chosen.heldout_variance(one) for one in study]), seeds)
        for study in deltas
    ]
    held = float(np.mean(np.abs(values) <= widths))
    assert 0.93 <= held <= 0.97, held


def test_without_effect_the_largest_mean_is_not_0() -> None:
    means = no_effect(1).mean(axis=-1).max(axis=-1).clip(min=0)
    assert means.mean() == pytest.approx(0.69, abs=0.03)  # of a run's standard deviation
    assert abs(chosen.held_out(no_effect(1)).mean()) < 0.03


def test_held_out_judges_by_the_seed_that_did_not_choose() -> None:
    deltas = np.array([[9.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    # Without the first seed the second source is best (2.5 of 0); else the first (4.5 of 2, 1.5).
    np.testing.assert_array_equal(chosen.held_out(deltas), [1.0, 0.0, 0.0])


def test_where_every_source_hurts_the_baseline_is_chosen() -> None:
    deltas = np.array([[-1.0, -2.0, -3.0], [-4.0, -1.0, -2.0]])
    np.testing.assert_array_equal(chosen.held_out(deltas), np.zeros(3))
    np.testing.assert_array_equal(chosen.chosen_by(deltas, deltas), np.zeros(3))


def test_dev_chooses_and_test_judges() -> None:
    test = np.array([[5.0, 5.0], [1.0, 2.0]])
    dev = np.array([[1.0, 1.0], [3.0, 3.0]])
    np.testing.assert_array_equal(chosen.chosen_by(test, dev), [1.0, 2.0])


def test_of_many_seeds_some_signs_are_drawn_and_always_the_same() -> None:
    deltas = np.random.default_rng(0).standard_normal((3, 12))
    variance = chosen.heldout_variance(deltas)
    assert variance == chosen.heldout_variance(deltas)
    assert 0.3 < variance * 12 < 3


def test_the_variance_of_a_source_that_is_always_best_is_that_of_its_mean() -> None:
    best = np.array([99.0, 101.0, 98.0, 102.0, 100.0])
    deltas = np.stack([best, np.zeros(5)])
    assert chosen.heldout_variance(deltas) == pytest.approx(best.var(ddof=1) / 5)
    assert chosen.chosen_variance(deltas, deltas) == pytest.approx(best.var(ddof=1) / 5)
