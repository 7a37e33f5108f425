"""Average, top-1 and bottom-1 transfer (paper, section 3.3, Table 2; bottom-1: section 6.1).

Only single-source runs are used. A *cell* is one (source, target, seed) whose transfer run and
baseline are both finished. A study over tasks T with n seeds expects |T|(|T|-1)n cells for each
model and algorithm. Numbers that are computed from fewer cells are marked.
"""

from __future__ import annotations

import pandas as pd

from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.results.metadata import Order, sort_rows

GROUP = ["dataset", "model", "algorithm"]
_PAIR = [*GROUP, "source", "target"]
_CELL = [*_PAIR, "seed"]

AGGREGATES = (
    "average_score",
    "average_sigma",
    "average_delta",
    "average_delta_sigma",
    "top1_score",
    "top1_delta",
    "bottom1_score",
    "bottom1_delta",
)


def compute_aggregates(
    deltas: pd.DataFrame, missing: pd.DataFrame, order: Order | None = None
) -> pd.DataFrame:
    """Compute the aggregates: one row per dataset, model and algorithm.

    Args:
        deltas: columns of ``columns.DELTAS``; multi-source rows are ignored.
        missing: columns of ``columns.MISSING``: the expected runs that are missing.
        order: order of the rows (``Metadata.order``); other names follow in order of appearance.

    Returns:
        dataset, model, algorithm, then (scores 0-100, deltas in points of score):

            - average_score, average_delta: mean over ordered pairs of the pair's mean over seeds.
            - average_sigma, average_delta_sigma: sample standard deviation (ddof = 1), over seeds,
              of the average over pairs within one seed; NaN with one seed. The paper does not
              define its sigma; this is ours.
            - top1_score: per target the maximum over sources of max(baseline, score), averaged over
              targets; top1_delta: per target max(0, maximum over sources of delta), averaged.
            - bottom1_score, bottom1_delta: per target the minimum over sources, averaged. For top-1
              and bottom-1, scores are averaged over seeds *before* the best or worst source is
              chosen, so that a lucky seed does not decide the choice.
            - n_pairs: ordered pairs of tasks expected; n_cells, n_expected: cells present and
              expected; n_seeds: seeds present; complete: whether all expected cells are present.
    """
    cells = _select_finished_pairs(deltas)
    counts = sort_rows(_count_cells(cells, missing), {key: key for key in GROUP}, order or {})
    if cells.empty:
        return counts.reindex(columns=[*GROUP, *AGGREGATES, *_COUNTS])
    pairs = cells.groupby(_PAIR, sort=False)[["score", "baseline_score", "delta"]].mean()
    per_seed = cells.groupby([*GROUP, "seed"], sort=False)[["score", "delta"]].mean()
    averages = pairs.groupby(GROUP, sort=False)[["score", "delta"]].mean()
    sigmas = per_seed.groupby(GROUP, sort=False)[["score", "delta"]].std(ddof=1)
    extremes = _compute_extremes(pairs).groupby(GROUP, sort=False).mean()
    values = extremes.assign(
        average_score=averages["score"],
        average_sigma=sigmas["score"],
        average_delta=averages["delta"],
        average_delta_sigma=sigmas["delta"],
    )
    joined = counts.merge(values.reset_index(), on=GROUP, how="left")
    return joined[[*GROUP, *AGGREGATES, *_COUNTS]]


_COUNTS = ["n_pairs", "n_cells", "n_expected", "n_seeds", "complete"]


def _select_finished_pairs(deltas: pd.DataFrame) -> pd.DataFrame:
    return deltas[(deltas["n_sources"] == 1) & deltas["delta"].notna()]


def _compute_extremes(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return scores and deltas of the best and worst source per target, indexed by both."""
    with_baseline = pairs.assign(or_baseline=pairs[["score", "baseline_score"]].max(axis=1))
    targets = with_baseline.groupby([*GROUP, "target"], sort=False)
    return pd.DataFrame(
        {
            "top1_score": targets["or_baseline"].max(),
            "top1_delta": targets["delta"].max().clip(lower=0),
            "bottom1_score": targets["score"].min(),
            "bottom1_delta": targets["delta"].min(),
        }
    )


def _count_cells(cells: pd.DataFrame, missing: pd.DataFrame) -> pd.DataFrame:
    """Count cells present and expected per group, including groups without any present cell."""
    absent = missing[(missing["n_sources"] == 1) & (missing["algorithm"] != BASELINE)]
    both = pd.concat(
        [cells[_CELL].assign(present=True), absent[_CELL].assign(present=False)],
        ignore_index=True,
    ).drop_duplicates(_CELL)
    groups = both.groupby(GROUP, sort=False)
    counts = pd.DataFrame({"n_cells": groups["present"].sum(), "n_expected": groups.size()})
    counts["n_pairs"] = both.drop_duplicates(_PAIR).groupby(GROUP, sort=False).size()
    counts["n_seeds"] = both[both["present"]].groupby(GROUP, sort=False)["seed"].nunique()
    counts["n_seeds"] = counts["n_seeds"].fillna(0).astype("int64")
    counts["complete"] = counts["n_cells"] == counts["n_expected"]
    return counts.reset_index()
