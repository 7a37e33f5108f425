"""Proportions of counts."""

from __future__ import annotations

import math

_Z = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""


def compute_wilson_interval(count: float, of: int) -> tuple[float, float]:
    """Compute the 95 % interval of a proportion (Wilson 1927), even for fractional counts."""
    z2, share = _Z**2, count / of
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = _Z / (1 + z2 / of) * math.sqrt(share * (1 - share) / of + z2 / (4 * of**2))
    return middle - half, middle + half
