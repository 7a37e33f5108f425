"""Straight lines and means with 95 % intervals, for figures.

Both take their values as independent, as such bands commonly do. Cells of one source or target
are not, so a band shows the trend's spread and is no test; tests are in ``statistics.cells``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

Floats = np.ndarray[Any, np.dtype[np.float64]]
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class BestFit:
    """A least-squares line through n points: y = middle + slope · (x − centre)."""

    slope: float
    middle: float
    centre: float
    n: int
    spread: float
    """Sum of squared distances of x from its mean."""
    residual: float
    """Residual standard deviation, n − 2 degrees of freedom; NaN with two points."""

    def band(self, at: Floats) -> tuple[Floats, Floats, Floats]:
        """The line and both ends of the 95 % interval of the mean of y, at some x. The interval
        is NaN with two points."""
        line = self.middle + self.slope * (at - self.centre)
        error = self.residual * np.sqrt(1 / self.n + (at - self.centre) ** 2 / self.spread)
        half = stats.t.ppf(0.5 + LEVEL / 2, self.n - 2) * error if self.n > 2 else error
        return line, line - half, line + half


def best_fit(x: Floats, y: Floats) -> BestFit | None:
    """The least-squares line of y on x; None where all x are equal or there are less than two."""
    if len(x) < 2 or np.ptp(x) < 1e-12:
        return None
    centre, middle, n = float(np.mean(x)), float(np.mean(y)), len(x)
    spread = float(np.sum((x - centre) ** 2))
    slope = float(np.sum((x - centre) * (y - middle)) / spread)
    errors = y - middle - slope * (x - centre)
    residual = float(np.sqrt(np.sum(errors**2) / (n - 2))) if n > 2 else float("nan")
    return BestFit(slope, middle, centre, n, spread, residual)


def mean_interval(values: Floats) -> tuple[float, float, float]:
    """Mean and both ends of its 95 % interval (Student's t); the ends are NaN for one value."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return mean, float("nan"), float("nan")
    half = float(stats.t.ppf(0.5 + LEVEL / 2, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half
