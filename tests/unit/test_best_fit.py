from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from simulated_studies import no_trend
from tasktransfer.stats.best_fit import compute_mean_interval, fit_line


def test_the_line_is_that_of_linear_regression_and_its_interval_a_jackknife_over_tasks() -> None:
    cells = no_trend(5, np.random.default_rng(1))
    x, y = cells.counts[cells.targets] - cells.counts[cells.sources], cells.deltas
    fit = fit_line(x, y, *cells.names)
    assert fit is not None
    known = stats.linregress(x, y)
    assert fit.slope == pytest.approx(known.slope)
    line, low, high = fit.compute_band(np.array([0.0]))
    assert line[0] == pytest.approx(known.intercept)
    without = [
        stats.linregress(x[kept], y[kept])
        for task in range(5)
        for kept in [(cells.sources != task) & (cells.targets != task)]
    ]
    for ends, full, each in (
        (fit.compute_slope_interval(), known.slope, [one.slope for one in without]),
        ((low[0], high[0]), known.intercept, [one.intercept for one in without]),
    ):
        error = np.sqrt(4 / 5 * np.sum((np.array(each) - full) ** 2))
        half = stats.t.ppf(0.975, 5 - 2) * error
        assert ends == pytest.approx((full - half, full + half))


@pytest.mark.parametrize(("tasks", "role"), [(10, "target"), (10, "source"), (7, "ratio")])
def test_counts_that_say_nothing_have_a_flat_line(tasks: int, role: str) -> None:
    """Tasks differ independently of their counts, so 5 of 100 slopes may differ from 0.

    If cells were treated as independent, 40 to 60 of 100 did.
    """
    random = np.random.default_rng(2)
    steep = 0
    for _ in range(100):
        cells = no_trend(tasks, random)
        fit = fit_line(cells.logarithm(role), cells.deltas, *cells.names)
        assert fit is not None
        low, high = fit.compute_slope_interval()
        steep += not low <= 0 <= high
    assert steep / 100 <= 0.1


def test_a_trend_is_seen() -> None:
    random = np.random.default_rng(3)
    seen = 0
    for _ in range(50):
        cells = no_trend(10, random)
        x = cells.logarithm("target")
        fit = fit_line(x, cells.deltas + 6 * x, *cells.names)
        assert fit is not None
        low, high = fit.compute_slope_interval()
        assert low < fit.slope < high
        seen += low > 0
    assert seen >= 40


def test_too_little_for_a_line() -> None:
    names = (["a", "a", "b", "b", "c", "c"], ["b", "c", "a", "c", "a", "b"])
    two = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    assert fit_line(two, np.arange(6.0), *names) is None
    assert fit_line(two * 0, np.arange(6.0), *names) is None
    three = np.array([0.0, 0.0, 1.0, 1.0, 2.0, 2.0])
    fit = fit_line(three, np.arange(6.0), *names)
    assert fit is not None
    assert fit.degrees == 1
    # Without "a" one cell is left, and no line.
    assert fit_line(np.array([0.0, 1.0, 2.0]), np.arange(3.0), list("aab"), list("bcc")) is None


def test_the_only_target_is_never_left_out() -> None:
    x = np.array([0.0, 1.0, 2.0, 4.0])
    fit = fit_line(x, np.array([0.0, 1.5, 1.5, 4.0]), list("abcd"), list("tttt"))
    assert fit is not None
    assert len(fit.slopes) == 4
    assert fit.degrees == 2


def test_a_mean_and_its_interval() -> None:
    values = np.array([1.0, 2.0, 4.0])
    mean, low, high = compute_mean_interval(values)
    known = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
    assert mean == pytest.approx(7 / 3)
    assert (low, high) == pytest.approx(known)
    assert np.isnan(compute_mean_interval(np.array([5.0]))[1:]).all()
