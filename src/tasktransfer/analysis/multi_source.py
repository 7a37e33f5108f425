"""Several sources at once against each of them alone (paper, section 6.2, Tables 3 and 6)."""

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
    "n_singles",
    "complete",
]


def multi_source_gain(deltas: pd.DataFrame) -> pd.DataFrame:
    """Delta of every multi-source run against the mean delta of its single sources.

    Args:
        deltas: columns of ``columns.DELTAS``.

    Returns:
        One row per dataset, target, sources (joined by ``+`` in ``source``), model and algorithm.
        ``multi_delta``: mean over seeds. ``single_delta``: mean over those of its sources that
        have single-source runs with the same model, algorithm and target, each a mean over seeds.
        ``difference``: the first minus the second (the paper's Table 3). ``n_singles``: how many
        of the ``n_sources`` single sources are there; ``complete``: all of them, each with as many
        seeds as the multi-source run.
    """
    known = deltas[deltas["delta"].notna()]
    several = known[known["n_sources"] > 1]
    if several.empty:
        return pd.DataFrame(columns=COLUMNS)
    groups = several.groupby(_GROUP, sort=False)
    multi = groups.agg(
        n_sources=("n_sources", "first"),
        multi_delta=("delta", "mean"),
        n_seeds=("seed", "nunique"),
    ).reset_index()
    joined = multi.merge(_single_means(known, multi), on=_GROUP, how="left")
    joined["n_singles"] = joined["n_singles"].fillna(0).astype("int64")
    joined["difference"] = joined["multi_delta"] - joined["single_delta"]
    joined["complete"] = (joined["n_singles"] == joined["n_sources"]) & (
        joined["fewest_seeds"] >= joined["n_seeds"]
    )
    return joined[COLUMNS]


def _single_means(known: pd.DataFrame, multi: pd.DataFrame) -> pd.DataFrame:
    """Mean over a multi-source run's sources of each one's mean delta over seeds."""
    singles = (
        known[known["n_sources"] == 1]
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
