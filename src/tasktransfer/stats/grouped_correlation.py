"""Rank correlation of two numbers over points that belong together: rounds of a training, trainings
of a model.

Points of one training are not independent, nor are those of one model, and a correlation over all
of them mixes two questions. *Between*: does a model with more of one have more of the other (the
means of models)? *Within*: do both move together while a model trains (the mean of the models' own
correlations)? The two may have opposite signs.

The interval draws models whole, with replacement, one less than there are (as ``stats.draws`` does
with dialogues: as many would make it too narrow by a tenth with five), and in each drawn model its
trainings whole; the ends are percentiles. ``python -m benchmarks.grouped_correlation`` prints how
often it holds the true value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tasktransfer.stats.correlation import spearman
from tasktransfer.stats.resampling import Floats, generator

Model = Sequence[Floats]
"""A model's trainings, each (points, 2)."""

RESAMPLES = 1000
FEWEST_MODELS = 4
"""With fewer, resamples of the models hold too few for an interval."""

Over = Literal["all", "between", "within"]


@dataclass(frozen=True, slots=True)
class Grouped:
    """Spearman's correlation with its 95 % interval; NaN is what cannot be told."""

    points: int
    value: float
    low: float
    high: float


def grouped_correlation(
    models: Sequence[Model], over: Over, *names: str, draws: int = RESAMPLES
) -> Grouped:
    """The correlation over all points, between models, or within them.

    Args:
        models: each with one training or more, of one point or more.
        names: what seeds the resampling, together with the points.
        draws: resamples of the models.
    """
    statistic = _STATISTICS[over]
    points = sum(len(training) for model in models for training in model)
    value = statistic(models)
    if math.isnan(value) or len(models) < FEWEST_MODELS:
        return Grouped(points, value, math.nan, math.nan)
    every = np.concatenate([training for model in models for training in model])
    random = generator(*names, over, every)
    drawn = np.array([statistic(_drawn(models, random)) for _ in range(draws)])
    told = drawn[~np.isnan(drawn)]
    low, high = np.percentile(told, [2.5, 97.5]) if len(told) else (math.nan, math.nan)
    return Grouped(points, value, float(low), float(high))


def of_points(points: npt.ArrayLike) -> float:
    """Spearman's correlation of (points, 2)."""
    both = np.asarray(points, np.float64)
    return spearman(both[:, 0], both[:, 1])


def _drawn(models: Sequence[Model], random: np.random.Generator) -> list[Model]:
    chosen = [models[place] for place in random.integers(0, len(models), len(models) - 1)]
    return [
        [model[place] for place in random.integers(0, len(model), len(model))] for model in chosen
    ]


def _over_all(models: Sequence[Model]) -> float:
    return of_points(np.concatenate([training for model in models for training in model]))


def _between(models: Sequence[Model]) -> float:
    return of_points([np.concatenate(model).mean(axis=0) for model in models])


def _within(models: Sequence[Model]) -> float:
    values = [of_points(np.concatenate(model)) for model in models]
    told = [value for value in values if not math.isnan(value)]
    return float(np.mean(told)) if told else math.nan


_STATISTICS: dict[Over, Callable[[Sequence[Model]], float]] = {
    "all": _over_all,
    "between": _between,
    "within": _within,
}
