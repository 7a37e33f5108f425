"""Control of the false discovery rate."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def compute_q_values(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the Benjamini-Hochberg q of each p; NaN stays NaN and does not count as a test.

    The procedure is proven to control its rate for independent tests and for positively dependent
    one-sided tests (Benjamini and Yekutieli 2001). Two-sided tests that share baselines and test
    sets are neither; in simulated heatmaps the rate is controlled (docs/analysis.md).
    """
    from scipy.stats import false_discovery_control  # noqa: PLC0415  # slow to import

    values = np.asarray(p, np.float64)
    q = np.full(values.shape, np.nan)
    tested = np.isfinite(values)
    if tested.any():
        q[tested] = false_discovery_control(values[tested], method="bh")
    return q
