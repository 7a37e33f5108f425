"""The heatmap's cells with a control in the baseline's place."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer.statistics.cells import MARKED

_PLACE = ["dataset", "model", "algorithm", "source", "target"]
_NUMBERS = ["n_seeds", "delta", "low", "high", "p", "q"]


def over_control(
    control: str, over_controls: pd.DataFrame, heatmap_cells: pd.DataFrame
) -> pd.DataFrame:
    """Cells whose delta is that over a control.

    Args:
        control: one of ``controls.CONTROLS``.
        over_controls: columns of ``columns.CONTROLS``.
        heatmap_cells: columns of ``columns.CELLS``.

    Returns:
        Columns of ``columns.CELLS``, ``baseline_score`` the control's; cells without a delta over
        it are left out.
    """
    is_told = (over_controls["control"] == control) & over_controls["delta"].notna()
    over = over_controls.loc[is_told, [*_PLACE, *_NUMBERS, "control_score"]]
    rows = heatmap_cells.drop(columns=_NUMBERS).merge(over, on=_PLACE, how="inner")
    score = rows["baseline_score"] = rows.pop("control_score")
    above_zero = score.where(score > 0, np.nan)
    rows["improvement"] = 100 * rows["delta"] / above_zero
    rows["significant"] = rows["q"] <= MARKED
    return rows[list(heatmap_cells.columns)]
