"""Scores by number of training dialogues, and a forecast for twice as many dialogues.

The forecast is a power law through the gains of the last two doublings (25 to 50, and 50 to 100 %
of the dialogues): the next gain is the last one, times the factor by which gains fell. Its interval
covers two other rules, each with its 95 % interval over test dialogues and samples of training
dialogues: the gain stays as it was, or it falls again by as many points as before. The gain of a
power law lies between the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, nan

import numpy as np

from tasktransfer.core.nodes.data import FRACTIONS, NEXT
from tasktransfer.stats.bootstrap import Trainings, compute_confidence, compute_mean_confidence
from tasktransfer.stats.cells import Cell


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A point of a learning curve, in points of the score.

    Attributes:
        fraction: fraction of the training dialogues; above 1 for the forecast.
        n_seeds: number of samples of training dialogues; 1 for all dialogues.
        score: mean score over samples, or its forecast.
        low, high: ends of its 95 % interval; NaN if unknown.
        gain: difference from the fraction before it, paired by sample and test dialogue; NaN for
            the first fraction.
        gain_low, gain_high: ends of its 95 % interval.
    """

    fraction: float
    n_seeds: int
    score: float
    low: float
    high: float
    gain: float
    gain_low: float
    gain_high: float


def compute_curve(cells: Mapping[float, Cell]) -> list[CurvePoint]:
    """Compute the points of a learning curve at ``FRACTIONS``, and its forecast at ``NEXT``.

    Args:
        cells: fraction → runs on samples of this size.
    """
    points, before = [], None
    for fraction in FRACTIONS:
        cell = cells[fraction]
        sure = compute_mean_confidence(cell.trainings, cell.units)
        gain = _compute_gain(cell, before)
        score, seeds = float(cell.trainings.scores.mean()), len(cell.trainings.seeds)
        points.append(CurvePoint(fraction, seeds, score, sure.low, sure.high, *gain))
        before = cell
    return [*points, _forecast_point(cells, points[-1].score)]


def _forecast_point(cells: Mapping[float, Cell], score: float) -> CurvePoint:
    """Forecast the point for twice as many dialogues as the training set has.

    Its interval allows for a gain that stays the same, and one that falls as between earlier
    points.
    """
    earlier, _, _ = _compute_weighted_sum(cells, {0.5: 1, 0.25: -1})
    last, *stays = _compute_weighted_sum(cells, {1.0: 1, 0.5: -1})
    _, *falls = _compute_weighted_sum(cells, {1.0: 2, 0.5: -3, 0.25: 1})
    gain = last * last / earlier if 0 <= last <= earlier and earlier > 0 else last
    ends = (min(stays[0], falls[0]), max(stays[1], falls[1]))
    after, low, high = (float(np.clip(score + each, 0, 100)) for each in (gain, *ends))
    return CurvePoint(NEXT, 0, after, low, high, after - score, low - score, high - score)


def _compute_weighted_sum(
    cells: Mapping[float, Cell], weights: Mapping[float, int]
) -> tuple[float, float, float]:
    """Compute a weighted sum of mean scores with its 95 % interval.

    Args:
        cells: fraction → runs.
        weights: fraction → weight. The first cell that has samples gives the seeds.
    """
    sampled = next(cells[fraction] for fraction in weights if fraction < 1)
    parts = [(weight, cells[fraction].pair_seeds(sampled)) for fraction, weight in weights.items()]
    scores = np.sum([weight * part.scores for weight, part in parts], axis=0)
    known = [weight * part.resampled for weight, part in parts if part.resampled is not None]
    resampled = np.sum(known, axis=0) if len(known) == len(parts) else None
    trainings = Trainings(sampled.trainings.seeds, scores, resampled)
    units = sampled.units if resampled is not None else None
    sure = compute_mean_confidence(trainings, units, least=-inf, most=inf)
    return float(scores.mean()), sure.low, sure.high


def _compute_gain(cell: Cell, before: Cell | None) -> tuple[float, float, float]:
    """Compute the difference from another cell with its 95 % interval.

    A difference that is the same for all samples and dialogues has no interval.
    """
    if before is None:
        return nan, nan, nan
    estimated = cell.subtract(before)
    sure = compute_confidence(estimated)
    if sure.low == sure.high:
        return estimated.delta, nan, nan
    return estimated.delta, sure.low, sure.high
