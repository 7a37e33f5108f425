"""Baselines that have not learned their task: their mean score does not beat a simple reference."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.designs.transfer.tables.reference import LABELS
from tasktransfer.present.sentences import format_fraction, join_names

_TARGET = ["dataset", "target"]


def find_unlearned(runs: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Return the baselines whose mean score is at most that of the best reference.

    Scores are compared as points, without an interval: a reference has no predictions per instance.

    Args:
        runs: columns of ``columns.RUNS``.
        reference: columns of ``tables.reference``.

    Returns:
        One row per compared baseline: dataset, model, target, n_runs, score (mean over runs),
        reference, reference_score and is_learned.
    """
    scored = runs[(runs["algorithm"] == BASELINE) & runs["score"].notna()]
    means = scored.groupby(["dataset", "model", "target"], sort=False)["score"].agg(
        n_runs="count", score="mean"
    )
    best = reference.loc[reference.groupby(_TARGET)["score"].idxmax()]
    best = best[[*_TARGET, "reference", "score"]].rename(columns={"score": "reference_score"})
    compared = means.reset_index().merge(best, on=_TARGET)
    compared["is_learned"] = compared["score"] > compared["reference_score"]
    return compared


def describe_unlearned(runs: pd.DataFrame, reference: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence about the baselines that have not learned.

    Nothing is yielded if all have learned, or if no reference is known.
    """
    if reference.empty or runs.empty:
        return
    compared = find_unlearned(runs, reference)
    rows = compared[~compared["is_learned"]].sort_values("score", kind="stable")
    if rows.empty:
        return
    has_models = compared["model"].nunique() > 1
    named = [
        f"{row['dataset']}/{row['target']}{' with ' + row['model'] if has_models else ''} "
        f"({row['score']:.1f}; {LABELS[row['reference']]} {row['reference_score']:.1f})"
        for row in rows.to_dict("records")
    ]
    count = format_fraction(len(rows), len(compared), "baselines")
    verb = "does" if len(rows) == 1 else "do"
    yield (
        f"{count} {verb} not beat a reference that trains no language model, by their mean scores: "
        f"{join_names(named)}. This study cannot say what transfers to these tasks; train for more "
        "updates first (training.updates)."
    )
