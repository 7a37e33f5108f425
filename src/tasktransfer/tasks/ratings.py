"""Ratings: numbers on a scale. The labels of the task's card are the two ends of the scale.

A model answers with a fraction of the scale, 0 at its first end and 1 at its second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tasktransfer.tasks.card import Task

STEPS = 1_000_000
"""Number of steps of a scale: encoded data stores a rating's fraction as a number of steps."""


def get_scale(card: Task) -> tuple[float, float]:
    """Return the two ends of a card's scale."""
    low, high = map(float, card.labels)
    return low, high


def compute_fraction(card: Task, rating: str) -> float:
    """Return a rating as a fraction of its scale, 0 to 1; NaN if it is not a number on it."""
    low, high = get_scale(card)
    try:
        share = (float(rating) - low) / (high - low)
    except ValueError:
        return math.nan
    return share if 0 <= share <= 1 else math.nan


def format_ratings(card: Task, shares: Sequence[float]) -> list[tuple[str]]:
    """Return the ratings of fractions, as texts.

    They have twelve digits, since rounded ratings would be ties for rank correlations.
    """
    low, high = get_scale(card)
    return [(f"{low + share * (high - low):.12g}",) for share in shares]


def scale_problem(card: Task) -> str | None:
    """Return the problem of the scale of a card of ratings. None if it is valid."""
    try:
        low, high = get_scale(card)
    except ValueError:
        return f"labels: {card.labels!r}; a rating's are the two ends of its scale, as numbers"
    return None if low < high else f"labels: {low:g} to {high:g}; the lower end comes first"
