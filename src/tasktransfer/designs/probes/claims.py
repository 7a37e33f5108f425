"""Correlations of BLEU with probe F1, and agreement of probes on the ranking of models.

These numbers test the paper's claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.probes.facts import CONTROL
from tasktransfer.results.frames import Frames
from tasktransfer.stats.correlation import compute_spearman
from tasktransfer.stats.grouped_correlation import Model, compute_grouped_correlation

ON = ["corpus", "model", "seed", "epoch"]
"""Columns that identify a point."""


def join_bleu_and_f1(scores: pd.DataFrame, rounds: pd.DataFrame) -> pd.DataFrame:
    """Return one row per probe and probed epoch, with the epoch's dev BLEU-2."""
    probed = scores.dropna(subset=["epoch"]).drop_duplicates([*ON, "probe"])
    return probed.merge(rounds[[*ON, "bleu2"]], on=ON)


def compute_probe_means(points: pd.DataFrame) -> pd.DataFrame:
    """Return one row per probed epoch with the mean F1 over probes, without the control."""
    real = points[points["probe"] != CONTROL]
    return real.groupby(ON, as_index=False, sort=False).agg({"f1": "mean", "bleu2": "mean"})


def make_claims(frames: Frames) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the frame ``claims``: correlations of BLEU-2 and F1."""
    return correlate_bleu(frames["probed"], frames["rounds"])


def make_agreement(frames: Frames) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the frame ``agreement``: correlations between probes."""
    return compare_rankings(frames["probed"])


def correlate_bleu(scores: pd.DataFrame, rounds: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Yield the correlations of BLEU-2 and F1, the rows of the table ``claims``."""
    for corpus, rows in join_bleu_and_f1(scores, rounds).groupby("corpus", sort=False):
        means = compute_probe_means(rows)
        for probe, points in [("all", means), *rows.groupby("probe", sort=False)]:
            trained = points[points["epoch"] > 0]
            for over, some in (("all", points), ("trained", trained)):
                yield (corpus, probe, over, *_correlate_groups(some, "all"))
            for over in ("between", "within"):
                yield (corpus, probe, over, *_correlate_groups(points, over))
        for model, points in means.groupby("model", sort=False):
            rho = compute_spearman(
                points["bleu2"].to_numpy(np.float64), points["f1"].to_numpy(np.float64)
            )
            yield (corpus, "all", model, len(points), rho, None, None)


def _correlate_groups(points: pd.DataFrame, over: Any) -> tuple[Any, ...]:
    """Return the number of points, their correlation and its interval."""
    models: list[Model] = [
        [
            training[["bleu2", "f1"]].to_numpy(np.float64)
            for _, training in rows.groupby("seed", sort=True)
        ]
        for _, rows in points.groupby("model", sort=False)
    ]
    if not models:
        return 0, None, None, None
    correlation = compute_grouped_correlation(models, over)
    return correlation.points, correlation.value, correlation.low, correlation.high


def compare_rankings(scores: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Yield rank correlations of two probes over models, the rows of the table ``agreement``."""
    trained = scores.dropna(subset=["epoch"])
    for (corpus, snapshot), rows in trained.groupby(["corpus", "snapshot"], sort=False):
        means = rows.groupby(["probe", "model"], sort=False)["f1"].mean().unstack("model")
        for first, second in combinations(means.index, 2):
            pair = means.loc[first].to_numpy(float), means.loc[second].to_numpy(float)
            yield (corpus, snapshot, first, second, means.shape[1], compute_spearman(*pair))
