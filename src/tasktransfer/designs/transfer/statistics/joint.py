"""Confidence interval of the mean delta over pairs, over seeds and dialogues together.

Tasks are fixed, because they are the benchmark and not a sample. Seeds are sampled: all sources of
a target share its baselines, so a target's mean over sources varies over seeds as one number, and
targets vary independently. Dialogues are sampled: a dialogue in the test sets of several tasks
counts in all of them jointly. The two are combined as in the cells (``stats.bootstrap``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import pandas as pd

from tasktransfer.designs.transfer.statistics.by_dialogue import DialogueScores
from tasktransfer.stats.bootstrap import Confidence, Estimate, compute_confidence
from tasktransfer.stats.resampling import Floats

UNKNOWN = Confidence(np.nan, np.nan, np.nan, np.nan)


def compute_joint_interval(
    group: pd.DataFrame, dialogues: Mapping[tuple[str, str], DialogueScores]
) -> Confidence:
    """Return the 95 % interval of the mean delta over pairs, and the p of a mean delta of 0.

    NaN with one seed, if a pair has fewer seeds than others, or if a run has no predictions.

    Args:
        group: the single-source deltas of one dataset, model and algorithm.
        dialogues: (dataset, target) → scores by dialogue.
    """
    seeds = sorted(group["seed"].unique())
    pairs = group.groupby(["source", "target"]).ngroups
    if len(seeds) < 2 or len(group) != pairs * len(seeds):
        return UNKNOWN
    of_seeds: list[float] = []
    in_both = 0.0
    pulled: dict[str, float] = defaultdict(float)
    degrees: list[float] = []
    for (dataset, target), rows in group.groupby(["dataset", "target"], sort=False):
        tested = dialogues.get((str(dataset), str(target)))
        pulls = None if tested is None else _sum_pulls(rows, tested, seeds)
        if tested is None or pulls is None:
            return UNKNOWN
        deltas = rows.groupby("seed")["delta"].sum().loc[seeds].to_numpy() / (pairs * len(seeds))
        pulls /= pairs * len(seeds)
        of_seeds.append(len(seeds) * float(deltas.var(ddof=1)))
        in_both += len(seeds) * float(pulls.var(axis=0, ddof=1).sum())
        for name, pull in zip(tested.names, pulls.sum(axis=0), strict=True):
            pulled[name] += float(pull)
        degrees.append(tested.degrees)
    of_dialogues = max(0.0, float(np.square([*pulled.values()]).sum()) - in_both)
    squares = float(np.square(of_seeds).sum())
    of_targets = sum(of_seeds) ** 2 / squares if squares else 1.0
    parts = (
        (sum(of_seeds), of_targets * (len(seeds) - 1)),
        (of_dialogues, min(degrees)),
    )
    return compute_confidence(Estimate(float(group["delta"].mean()), parts, len(seeds)))


def _sum_pulls(rows: pd.DataFrame, tested: DialogueScores, seeds: list[int]) -> Floats | None:
    """Sum each dialogue's influence on the deltas over sources, (seeds, dialogues)."""
    total = np.zeros((len(seeds), len(tested.names)))
    names = rows[["model", "seed", "digest", "baseline_digest"]]
    for model, seed, run, baseline in names.itertuples(index=False, name=None):
        if (model, run) not in tested.pulls or (model, baseline) not in tested.pulls:
            return None
        pull = tested.pulls[model, run] - tested.pulls[model, baseline]
        total[seeds.index(seed)] += pull
    return total
