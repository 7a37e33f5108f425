"""Ratings: numbers on a scale. The labels of the task's card are the two ends of the scale.

A model answers with a fraction of the scale, 0 at its first end and 1 at its second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tasktransfer.tasks.card import Task

SCALE_STEPS = 1_000_000
"""Number of steps of a scale. Encoded data stores a rating as its step."""


def get_scale(card: Task) -> tuple[float, float]:
    """Return the lowest and the highest rating of a card's scale."""
    low, high = map(float, card.labels)
    return low, high


def compute_fraction(card: Task, rating: str) -> float:
    """Convert a rating to a fraction of its scale, 0 to 1, or NaN if it is invalid."""
    low, high = get_scale(card)
    try:
        fraction = (float(rating) - low) / (high - low)
    except ValueError:
        return math.nan
    return fraction if 0 <= fraction <= 1 else math.nan


def format_ratings(card: Task, fractions: Sequence[float]) -> list[tuple[str]]:
    """Convert fractions of a card's scale to ratings, each a tuple of one text.

    The ratings have twelve digits, because rounded ratings would be ties in rank correlations.
    """
    low, high = get_scale(card)
    return [(f"{low + fraction * (high - low):.12g}",) for fraction in fractions]


def find_scale_problem(card: Task) -> str | None:
    """Describe the problem with a rating card's scale, or return None."""
    try:
        low, high = get_scale(card)
    except ValueError:
        return (
            f"labels: {card.labels!r} are not the two ends of a scale. Give the lower and the "
            "higher end as numbers."
        )
    if low < high:
        return None
    return f"labels: The scale from {low:g} to {high:g} does not rise. Give the lower end first."
