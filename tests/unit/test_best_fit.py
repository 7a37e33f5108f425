from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tasktransfer.analysis.best_fit import best_fit, mean_interval


def test_the_line_is_that_of_linear_regression() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=40)
    y = 3 - 2 * x + rng.normal(size=40)
    fit = best_fit(x, y)
    known = stats.linregress(x, y)
    assert fit is not None
    assert fit.slope == pytest.approx(known.slope)
    line, low, high = fit.band(np.array([0.0, fit.centre]))
    assert line[0] == pytest.approx(known.intercept)
    # At x = 0 the mean of y is the intercept, whose standard error linregress gives.
    half = stats.t.ppf(0.975, 38) * known.intercept_stderr
    assert high[0] - line[0] == pytest.approx(half)
    assert line[0] - low[0] == pytest.approx(half)
    assert high[1] - low[1] < high[0] - low[0], "the band is narrowest at the mean of x"


def test_the_band_covers_the_true_line_in_95_of_100_samples() -> None:
    rng = np.random.default_rng(2)
    x = np.linspace(-1, 1, 12)
    at = np.array([0.7])
    covered = 0
    for _ in range(2000):
        fit = best_fit(x, 1 + 2 * x + rng.normal(size=12))
        assert fit is not None
        _, low, high = fit.band(at)
        covered += bool(low[0] <= 2.4 <= high[0])
    assert 0.93 < covered / 2000 < 0.97


def test_too_little_for_a_line_or_a_band() -> None:
    one = np.array([1.0])
    same = np.array([2.0, 2.0, 2.0])
    assert best_fit(one, one) is None
    assert best_fit(same, np.arange(3.0)) is None
    fit = best_fit(np.array([0.0, 1.0]), np.array([0.0, 3.0]))
    assert fit is not None
    line, low, high = fit.band(np.array([2.0]))
    assert line[0] == pytest.approx(6.0)
    assert np.isnan([low[0], high[0]]).all()


def test_a_mean_and_its_interval() -> None:
    values = np.array([1.0, 2.0, 4.0])
    mean, low, high = mean_interval(values)
    known = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
    assert mean == pytest.approx(7 / 3)
    assert (low, high) == pytest.approx(known)
    assert np.isnan(mean_interval(np.array([5.0]))[1:]).all()
