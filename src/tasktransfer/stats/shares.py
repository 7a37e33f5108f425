"""Shares of what is counted."""

from __future__ import annotations

import math

_Z = 1.959963984540054
"""Of the normal distribution, for 95 %."""


def wilson(count: float, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927); ``count`` may have parts, of ties."""
    z2, share = _Z**2, count / of
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = _Z / (1 + z2 / of) * math.sqrt(share * (1 - share) / of + z2 / (4 * of**2))
    return middle - half, middle + half
