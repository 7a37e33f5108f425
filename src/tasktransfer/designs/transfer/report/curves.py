"""Learning curves of single runs, for the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

RunKey = tuple[Any, ...]
"""Dataset, model, algorithm, source, target and seed of a run."""
Curve = list[float | None]
_KEYS = ("dataset", "model", "algorithm", "source", "target", "seed")
_MEASURES = ("loss", "dev_score")
_DIGITS = 4


def name_run(row: Mapping[str, Any]) -> RunKey:
    """Return the key of the run in a row of ``transfer_runs`` or ``training_curves``."""
    return tuple(row[key] for key in _KEYS)


def group_curves(curves: pd.DataFrame) -> dict[RunKey, list[Curve]]:
    """Return the losses and the dev scores by round of each run; None for rounds without a loss."""
    ordered = curves.sort_values("round", kind="stable")
    return {
        key: [[_round(value) for value in rows[measure]] for measure in _MEASURES]
        for key, rows in ordered.groupby(list(_KEYS), sort=False)
    }


def _round(value: float) -> float | None:
    return None if pd.isna(value) else float(f"{value:.{_DIGITS}g}")
