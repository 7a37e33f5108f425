"""Numbers published in the FETA paper, as data frames, for comparison with ours.

Albalak et al., FETA: A Benchmark for Few-Sample Task Transfer in Open-Domain Dialogue (EMNLP
2022). Each CSV in this folder names its table and lists the values that could not be copied
literally. Tasks have their full names, and datasets and algorithms are named as in a study. Models
are "BERT" (bert-base-uncased), "GPT-2" (gpt2) and "T5" (t5-base).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib.resources import files
from itertools import permutations
from typing import Literal

import pandas as pd

MODELS = ("BERT", "GPT-2", "T5")
"""The paper's models, as named in its tables."""

ROUNDING = 0.02
"""Tolerance in points for comparing two differences of published numbers. Each of the four numbers
was rounded to two decimals, so each may be off by 0.005."""

CONSISTENCY = {
    "dataset": "dataset",
    "model": "the paper's model",
    "algorithm": "transfer algorithm",
    "average_baseline": "average score - average delta, rounded to two decimals like both",
    "top1_baseline": "top-1 score - top-1 delta",
    "spread": "largest - smallest of the six baselines of the dataset and model, points",
    "consistent": "spread is within ROUNDING",
}
"""Meanings of the columns of ``check_consistency``."""

_GROUP = ["dataset", "model"]


def read_table1() -> pd.DataFrame:
    """Read tasks and samples (Table 1): one row for each of the 17 tasks.

    Columns: dataset, task, short; task_type; metrics (those whose mean is the score, joined by
    ``;``); original_samples (of the original data set); train, dev (few-sample), test: samples.
    """
    return _read_csv("table1")


def read_table2() -> pd.DataFrame:
    """Read aggregate single-source transfer (Table 2): 18 rows by dataset, model and algorithm.

    Columns: dataset, model, algorithm; average_score, top1_score (0-100); average_sigma (of
    average_score; the paper does not define it); average_delta, top1_delta (points); bottom1_score
    (section 6.1; NaN except for T5 on DailyDialog).
    """
    return _read_csv("table2")


def read_table3() -> pd.DataFrame:
    """Read Table 3, three sources together or alone: one row per target, model and algorithm.

    Columns: dataset, target, short, model, algorithm; gain: delta of transfer from the top-3
    sources together, minus the mean delta of the three alone, points.
    """
    return _read_csv("table3")


def read_table6() -> pd.DataFrame:
    """Read Table 6, the deltas of Table 3: one row per target, model and algorithm.

    Columns: dataset, target, short, model, algorithm; single_source_delta: mean delta of the
    top-3 sources alone; multi_source_delta: all three together (points, NaN if not legible); note:
    remark on the row's numbers, missing if there is none.
    """
    return _read_csv("table6")


Agreement = Literal["same", "as far as legible", "other"]
"""Agreement of a run's sources with the paper's."""


def read_sources() -> pd.DataFrame:
    """Read the sources of the multi-source targets (Table 6): one row per target.

    Columns: dataset, target, short; sources: three joined by ``+``. ``|`` separates alternatives,
    and ``?`` marks a source that is not legible in the available copy.
    """
    return _read_csv("sources")


def compare_sources(target: str, ours: Collection[str]) -> Agreement:
    """Return the agreement of a target's sources with those of Table 6.

    It is "other" if the table does not have the target.
    """
    slots = _read_source_slots().get(target, [])
    if len(ours) != len(slots) or not any(
        all(slot == {"?"} or task in slot for task, slot in zip(order, slots, strict=True))
        for order in permutations(ours)
    ):
        return "other"
    legible = all(len(slot) == 1 and slot != {"?"} for slot in slots)
    return "same" if legible else "as far as legible"


@cache
def _read_source_slots() -> dict[str, list[set[str]]]:
    """Return, by target, the candidate tasks for each of its three sources."""
    rows = read_sources()[["target", "sources"]].itertuples(index=False, name=None)
    return {target: [set(slot.split("|")) for slot in joined.split("+")] for target, joined in rows}


def check_consistency() -> pd.DataFrame:
    """Check that Table 2 is consistent with itself and with our reading of its equations.

    Score minus delta is the mean baseline, which no algorithm changes. If top-1 score is the mean
    over targets of max(baseline, score), and top-1 delta the mean of max(0, delta), their
    difference is the same baseline.

    Returns:
        One row per row of Table 2, columns as in ``CONSISTENCY``.
    """
    table = read_table2()
    check = table[[*_GROUP, "algorithm"]].assign(
        average_baseline=(table["average_score"] - table["average_delta"]).round(2),
        top1_baseline=(table["top1_score"] - table["top1_delta"]).round(2),
    )
    baselines = check[["average_baseline", "top1_baseline"]]
    ends = check[_GROUP].assign(low=baselines.min(axis=1), high=baselines.max(axis=1))
    groups = ends.groupby(_GROUP)
    spread = groups["high"].transform("max") - groups["low"].transform("min")
    return check.assign(spread=spread.round(2), consistent=spread <= ROUNDING + 1e-9)


def _read_csv(name: str) -> pd.DataFrame:
    with (files(__name__) / f"{name}.csv").open(encoding="utf-8") as lines:
        return pd.read_csv(lines, comment="#")
