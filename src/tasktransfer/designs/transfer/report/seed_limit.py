"""Sentence on matrices with too few seeds for any significant cell."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from tasktransfer.present.sentences import MOST_Q

LEAST = 0.5
"""Minimum fraction of cells that cannot become significant for the sentence to be printed."""


def describe_seed_limit(cells: pd.DataFrame) -> str:
    """Return a sentence on cells with too few seeds for any change to be significant.

    A single cell has q ≤ 0.05 if its p is at most 0.05 divided by the number of tests. At the
    cell's standard error, this may need more than 100 points. Empty if that holds for fewer than
    half of the cells, or if a cell is significant.

    Args:
        cells: columns of ``columns.CELLS``.
    """
    tested = cells[(cells["n_sources"] == 1) & cells["q"].notna()]
    if tested.empty or tested["significant"].any():
        return ""
    tests = tested.groupby("dataset")["q"].transform("size")
    quantile = stats.t.ppf(1 - MOST_Q / 2 / tests.to_numpy(float), tested["degrees"])
    needed = quantile * tested["standard_error"].to_numpy(float)
    count = int((np.nan_to_num(needed) > 100).sum())
    if count < LEAST * len(tested):
        return ""
    seeds = sorted({int(number) for number in tested["n_seeds"]})
    words = {2: "two", 3: "three"}
    which = (
        f"{words.get(seeds[0], seeds[0])} seeds"
        if len(seeds) == 1
        else f"{seeds[0]} to {seeds[-1]} seeds"
    )
    return (
        f"With {which}, {count} of {len(tested)} cells would need a change of more than 100 points "
        f"to be significant (q ≤ {MOST_Q}). The mean change over all pairs of tasks can be "
        "significant even if it is smaller."
    )
