"""Answer of a study without transfer: the scores of its baselines and prompted models."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tasktransfer.designs.transfer.collect.method_columns import MEAN
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.errors import format_quantity
from tasktransfer.present.numbers import SCORES
from tasktransfer.present.sentences import format_value_with_interval, join_names
from tasktransfer.results.frames import Frames

MOST = 8
"""Maximum number of scores in a sentence."""


def has_transfer(runs: pd.DataFrame, missing: pd.DataFrame) -> bool:
    """Return whether a study plans runs with sources.

    Args:
        runs: columns of ``columns.RUNS``.
        missing: columns of ``columns.MISSING``.
    """
    return any(bool((frame["n_sources"] > 0).any()) for frame in (runs, missing))


def describe_scores(frames: Frames) -> Iterator[str]:
    """Yield sentences with the mean scores of baselines and prompted models."""
    baselines = [*_list_baseline_scores(frames["transfer_runs"])]
    if baselines:
        yield f"Mean scores of the baselines (0-100): {join_names(baselines, MOST)}."
    prompted = [*_list_prompted_scores(frames["prompted"])] if "prompted" in frames else []
    if prompted:
        yield f"Mean scores of the prompted models (0-100): {join_names(prompted, MOST)}."
    yield "The study has no transfer, so it does not show which task to train on first."


def _list_baseline_scores(runs: pd.DataFrame) -> Iterator[str]:
    scored = runs[(runs["algorithm"] == BASELINE) & runs["score"].notna()]
    for (dataset, target, model), group in scored.groupby(
        ["dataset", "target", "model"], sort=False
    ):
        seeds = format_quantity(group["seed"].nunique(), "seed")
        yield f"{dataset}/{target} with {model} {group['score'].mean():.1f} ({seeds})"


def _list_prompted_scores(prompted: pd.DataFrame) -> Iterator[str]:
    if prompted.empty:
        return
    means = prompted[(prompted["target"] == MEAN) & prompted["score"].notna()]
    for row in means.to_dict("records"):
        shots, tasks = (
            format_quantity(int(row[key]), name)
            for key, name in (("shots", "shot"), ("n_targets", "task"))
        )
        score = format_value_with_interval(row["score"], row["low"], row["high"], ".1f", SCORES)
        yield f"{row['dataset']} with {row['model']} and {shots} {score} ({tasks})"
