"""Several sources together compared with each alone (paper, section 6.2, Tables 3 and 6)."""

from __future__ import annotations

import pandas as pd

_GROUP = ["dataset", "target", "source", "model", "algorithm"]
COLUMNS = [
    *_GROUP,
    "n_sources",
    "multi_delta",
    "single_delta",
    "difference",
    "n_seeds",
    "n_expected",
    "n_singles",
    "complete",
]


def compute_multi_source_gains(
    deltas: pd.DataFrame, missing: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Compare the delta of every multi-source run with the mean delta of its single sources.

    Args:
        deltas: columns of ``columns.DELTAS``.
        missing: columns of ``columns.MISSING``. If given, multi-source runs that are missing for
            all seeds have a row without numbers, and missing seeds make a row incomplete.

    Returns:
        One row per dataset, target, sources (joined by ``+`` in ``source``), model and algorithm.
        ``multi_delta``: mean over seeds. ``single_delta``: mean over those of its sources that
        have single-source runs with the same model, algorithm and target, each a mean over seeds.
        ``difference``: the first minus the second (the paper's Table 3). ``n_singles``: number of
        finished single sources out of ``n_sources``. ``n_expected``: planned seeds (at least
        ``n_seeds``, the finished ones). ``complete``: whether all sources and seeds are finished
        and each single source has as many seeds as the multi-source run.
    """
    measured = deltas[deltas["delta"].notna()]
    several = measured[measured["n_sources"] > 1]
    lost = several.iloc[:0] if missing is None else missing[missing["n_sources"] > 1]
    if several.empty and lost.empty:
        return pd.DataFrame(columns=COLUMNS)
    multi = _compute_multi_means(several, lost)
    joined = multi.merge(_average_single_sources(measured, multi), on=_GROUP, how="left")
    joined["n_singles"] = joined["n_singles"].fillna(0).astype("int64")
    joined["difference"] = joined["multi_delta"] - joined["single_delta"]
    joined["complete"] = (
        (joined["n_seeds"] == joined["n_expected"])
        & (joined["n_singles"] == joined["n_sources"])
        & (joined["fewest_seeds"] >= joined["n_seeds"])
    )
    return joined[COLUMNS]


def _compute_multi_means(several: pd.DataFrame, lost: pd.DataFrame) -> pd.DataFrame:
    """Compute means over seeds of multi-source runs, and count finished and planned seeds.

    A run whose baseline is missing is in ``lost`` and not in ``several``.
    """
    planned = pd.concat([frame for frame in (several, lost) if len(frame)], ignore_index=True)
    groups = planned.groupby(_GROUP, sort=False)
    means = several.groupby(_GROUP, sort=False).agg(
        multi_delta=("delta", "mean"), n_seeds=("seed", "nunique")
    )
    multi = groups.agg(n_sources=("n_sources", "first"), n_expected=("seed", "nunique")).join(means)
    multi["n_seeds"] = multi["n_seeds"].fillna(0).astype("int64")
    multi["multi_delta"] = multi["multi_delta"].astype("float64")
    return multi.reset_index()


def _average_single_sources(measured: pd.DataFrame, multi: pd.DataFrame) -> pd.DataFrame:
    """Average, over a multi-source run's sources, the mean delta of each source over seeds."""
    singles = (
        measured[measured["n_sources"] == 1]
        .groupby(_GROUP, sort=False)
        .agg(delta=("delta", "mean"), seeds=("seed", "nunique"))
        .reset_index()
        .rename(columns={"source": "single"})
    )
    parts = multi[_GROUP].assign(single=multi["source"].str.split("+")).explode("single")
    matched = parts.merge(singles, on=["dataset", "target", "model", "algorithm", "single"])
    return (
        matched.groupby(_GROUP, sort=False)
        .agg(
            single_delta=("delta", "mean"),
            n_singles=("single", "nunique"),
            fewest_seeds=("seeds", "min"),
        )
        .reset_index()
    )
