"""Control of the false discovery rate."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats


def false_discovery(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Benjamini-Hochberg's q of each p; NaN stays NaN and is not counted as a test.

    It is proven to hold its rate for independent tests and, one-sided, for positively dependent
    ones (Benjamini and Yekutieli 2001). Two-sided tests that share baselines and test sets are
    neither; in simulated heatmaps it holds (docs/analysis.md).
    """
    values = np.asarray(p, np.float64)
    q = np.full(values.shape, np.nan)
    tested = np.isfinite(values)
    if tested.any():
        q[tested] = stats.false_discovery_control(values[tested], method="bh")
    return q
