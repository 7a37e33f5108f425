"""Krippendorff's alpha of raters, with an interval over clusters of rated items.

Alpha is 1 for perfect agreement and 0 for the agreement expected by chance (Krippendorff 2011,
"Computing Krippendorff's alpha-reliability"). Items with one rating do not enter it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import DataError
from tasktransfer.stats.draws import build_dialogue_units, sample_unit_weights

Level = Literal["nominal", "ordinal"]
Counts = npt.NDArray[np.int64]
LEAST_CLUSTERS = 5
"""Smallest number of clusters with an interval; resamples of fewer clusters are almost constant."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of raters.

    Attributes:
        alpha: Krippendorff's alpha; NaN if no item has two ratings, or all ratings are equal.
        low: lower end of the 95 % percentile interval; NaN with fewer than ``LEAST_CLUSTERS``.
        high: upper end of the interval.
        items: number of items with at least two ratings.
        clusters: number of clusters of these items.
    """

    alpha: float
    low: float
    high: float
    items: int
    clusters: int


def estimate_agreement(
    counts: Counts, clusters: Sequence[str], level: Level, name: str
) -> Agreement:
    """Estimate Krippendorff's alpha, with an interval from resampled clusters.

    Args:
        counts: number of raters who gave each answer to an item, shape (items, answers); ordinal
            answers are in their order.
        clusters: cluster of each item, for example its context.
        level: nominal or ordinal.
        name: name that seeds the random resamples.

    Raises:
        DataError: the package krippendorff is not installed.
    """
    several = counts.sum(axis=1) >= 2
    counts = counts[several]
    units = build_dialogue_units([c for c, kept in zip(clusters, several, strict=True) if kept])
    alpha = _compute_alpha(counts, level)
    low = high = math.nan
    if units.count >= LEAST_CLUSTERS and not math.isnan(alpha):
        weights = sample_unit_weights(name, level, units.count).astype(np.int64)
        resampled = [
            _compute_alpha(np.repeat(counts, drawn[units.of_instance], axis=0), level)
            for drawn in weights
        ]
        low, high = np.nanquantile(resampled, [0.025, 0.975]).tolist()
    return Agreement(alpha, low, high, len(counts), units.count)


def _compute_alpha(counts: Counts, level: Level) -> float:
    """Compute Krippendorff's alpha, or NaN if all answers are equal."""
    try:
        from krippendorff import alpha  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise DataError(
            "agreement: The package krippendorff is not installed. Run `pip install "
            "'tasktransfer[agreement]'`."
        ) from error
    if (counts.sum(axis=0) > 0).sum() < 2:
        return math.nan
    return float(alpha(value_counts=counts, level_of_measurement=level))
