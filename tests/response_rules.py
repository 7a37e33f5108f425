"""A rule that rates responses of the panel's tiny world without their contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tasktransfer.designs.panel.sources import tiny


def find_thing(text: str) -> str | None:
    """Return the thing that a text mentions; None if it mentions none."""
    return next((thing for thing in tiny.THINGS if thing in text), None)


def is_ordered(text: str) -> bool:
    """Return whether a reply's words are in order."""
    return any(text == reply.format(thing=thing) for reply in tiny.REPLIES for thing in tiny.THINGS)


def rate_by_order(rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Return 1 for each item whose response has its words in order, 0 for the others.

    Without the context, a response tells nothing else about its planted quality.
    """
    return np.array([is_ordered(row["response"]) for row in rows], float)


def compute_mean_ratings(rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Return the mean human rating of each item."""
    return np.array([np.mean(row["ratings"]) for row in rows])
