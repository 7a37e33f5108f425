"""Ratings: numbers on a scale, whose two ends are the labels of a task's card.

A model answers with a share of the scale, 0 at its first end and 1 at its second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tasktransfer.tasks.card import Task

STEPS = 1_000_000
"""A rating's share of its scale is kept as a whole number of so many steps beside token ids."""


def scale_of(card: Task) -> tuple[float, float]:
    """The two ends of a card's scale."""
    low, high = map(float, card.labels)
    return low, high


def share_of(card: Task, rating: str) -> float:
    """Where a rating lies on its scale, 0 to 1; NaN for what is no number on it."""
    low, high = scale_of(card)
    try:
        share = (float(rating) - low) / (high - low)
    except ValueError:
        return math.nan
    return share if 0 <= share <= 1 else math.nan


def rating_texts(card: Task, shares: Sequence[float]) -> list[tuple[str]]:
    """Shares as the answers that they stand for. Twelve digits keep apart what a model told apart:
    rank correlations would take rounded ratings for ties."""
    low, high = scale_of(card)
    return [(f"{low + share * (high - low):.12g}",) for share in shares]


def scale_problem(card: Task) -> str | None:
    """What is wrong with the scale of a card of ratings; None: nothing."""
    try:
        low, high = scale_of(card)
    except ValueError:
        return f"labels: {card.labels!r}; a rating's are the two ends of its scale, as numbers"
    return None if low < high else f"labels: {low:g} to {high:g}; the lower end comes first"
