"""Straight lines and means with 95 % intervals, for figures.

The cells of a source or of a target are not independent: what is special about that task is in
all of them, and so are the counts that a line is drawn over. The unit is the task, so a line's
interval is a jackknife over tasks: each task is left out in turn, with every cell in which it is
source or target, and with G tasks

    variance = (G - 1) / G * sum over tasks of (line without the task - line)^2

(Snijders and Borgatti 1999, "Non-parametric standard errors and tests for network statistics";
it is too wide rather than too narrow, Efron and Stein 1981). Its t distribution has as many degrees
of freedom as there are tasks, or distinct x if these are fewer, less 2. Where counts say nothing,
0 to 7 % of slopes differ from 0 by it, and 11 to 71 % if cells are taken as independent
(benchmarks/slope_simulation.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

Floats = np.ndarray[Any, np.dtype[np.float64]]
LEVEL = 0.95
FEWEST_X = 3
"""A line through two distinct x fits them whatever they are."""


@dataclass(frozen=True, slots=True)
class BestFit:
    """A least-squares line, and the lines without each task in turn, (tasks,)."""

    slope: float
    intercept: float
    slopes: Floats
    intercepts: Floats
    degrees: int
    """Of freedom, of the intervals' t distribution; at least 1."""

    def band(self, at: Floats) -> tuple[Floats, Floats, Floats]:
        """The line and both ends of the 95 % interval of the mean of y, at some x."""
        line = self.intercept + self.slope * at
        without = self.intercepts[:, None] + self.slopes[:, None] * at
        half = self._half_width(without - line)
        return line, line - half, line + half

    def slope_interval(self) -> tuple[float, float]:
        """Both ends of the slope's 95 % interval."""
        half = float(self._half_width(self.slopes - self.slope))
        return self.slope - half, self.slope + half

    def _half_width(self, moved: Floats) -> Any:
        """From how far each task moves a number when it is left out, (tasks, ...)."""
        tasks = len(self.slopes)
        error = np.sqrt((tasks - 1) / tasks * np.sum(moved**2, axis=0))
        return stats.t.ppf(0.5 + LEVEL / 2, self.degrees) * error


def best_fit(
    x: Floats, y: Floats, sources: Sequence[str], targets: Sequence[str]
) -> BestFit | None:
    """The least-squares line of y on x through cells, with the tasks that its interval resamples.

    Args:
        x, y: one number per cell.
        sources, targets: the tasks of each cell.

    Returns:
        None with fewer than three distinct x, and where the line without some task could not be
        drawn. A task that every cell has (a figure's only target) is never left out: the line and
        its interval are those of that task.
    """
    distinct = len(np.unique(x))
    if distinct < FEWEST_X:
        return None
    source, target = np.asarray(sources), np.asarray(targets)
    without = [(source != task) & (target != task) for task in np.unique([source, target])]
    without = [kept for kept in without if kept.any()]
    if any(len(np.unique(x[kept])) < 2 for kept in without):
        return None
    whole = stats.linregress(x, y)
    lines = [stats.linregress(x[kept], y[kept]) for kept in without]
    return BestFit(
        slope=float(whole.slope),
        intercept=float(whole.intercept),
        slopes=np.array([line.slope for line in lines]),
        intercepts=np.array([line.intercept for line in lines]),
        degrees=min(len(without), distinct) - 2,
    )


def mean_interval(values: Floats) -> tuple[float, float, float]:
    """Mean and both ends of its 95 % interval (Student's t, values taken as
    independent); the ends are NaN for one value."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return mean, float("nan"), float("nan")
    half = float(stats.t.ppf(0.5 + LEVEL / 2, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half
