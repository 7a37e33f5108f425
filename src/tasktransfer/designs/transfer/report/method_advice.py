"""Sentences that recommend a method for each target, with the evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from tasktransfer.core.references import (
    METHODS,
    MOST_FREQUENT,
    PROMPTED,
    TRANSFER,
    format_method_label,
)
from tasktransfer.errors import format_quantity
from tasktransfer.present.numbers import DIFFERENCES, SCORES, is_missing
from tasktransfer.present.sentences import MOST_Q, format_value_with_interval

LEAST_RATIO = 1.5
"""Smallest ratio of training times that a sentence mentions."""

PERFECT = 100 - 1e-9
"""Score of a method whose predictions are all correct."""

Row = Mapping[Any, Any]


def describe_methods(methods: pd.DataFrame) -> Iterator[str]:
    """Yield one sentence per target on the recommended method.

    Args:
        methods: columns of ``frames.METHODS``.
    """
    for (dataset, target), group in methods.groupby(["dataset", "target"], sort=False):
        rows = group.to_dict("records")
        yield f"For {dataset}/{target}, {_describe_target(rows)}"


def _describe_target(rows: list[dict[Any, Any]]) -> str:
    best = next(row for row in rows if row["is_best"])
    chosen = next((row for row in rows if row["recommended"]), None)
    has_models = len({row["model"] for row in rows if not is_missing(row["model"])}) > 1
    if chosen is None:
        return (
            f"no method is recommended, because {_format_method(best, has_models)} has the highest "
            f"score ({_format_score(best)}) and could not be tested. Train each method with "
            "two or more seeds (for example seeds: 3), and evaluate all methods on the same test "
            "instances."
        )
    if chosen["method"] == MOST_FREQUENT and chosen["score"] >= PERFECT:
        return (
            "the most frequent answer is correct for all test instances, so this test split cannot "
            "distinguish methods. Use a test split that also has other answers."
        )
    if chosen is best and chosen["method"] == MOST_FREQUENT:
        return (
            "no method has a higher score than the most frequent answer "
            f"({_format_score(chosen)}). Label more dialogues, or train for longer."
        )
    if chosen["method"] == MOST_FREQUENT:
        return (
            "no method is significantly better than the most frequent answer "
            f"({_format_score(chosen)}). The best method is {_format_method(best, has_models)} "
            f"({_format_delta(best)}). Label more dialogues, or train for longer."
        )
    advice = f"use {_format_method(chosen, has_models)} (score {_format_score(chosen)}). "
    if chosen is not best:
        size = format_quantity(max(int(row["train_size"]) for row in rows), "training instance")
        cost = _compare_cost(best, chosen)
        name = _format_method(best, has_models)
        return (
            f"{advice}The method with the highest score, {name}, is not significantly better with "
            f"{size} "
            f"({_format_delta(best)}){cost}."
        )
    others = [row for row in rows if row is not chosen]
    next_best = max(others, key=lambda row: row["score"])
    next_name = _format_method(next_best, has_models)
    verdict = (
        "is significantly worse"
        if next_best["q"] <= MOST_Q
        else "is not significantly worse, but not simpler"
        if not is_missing(next_best["q"])
        else "could not be tested"
    )
    return (
        f"{advice}The next best method is {next_name}, which {verdict} "
        f"({_format_delta(next_best)})."
    )


def _format_method(row: Row, has_models: bool) -> str:
    """Describe a method in words, with its model if the study has several."""
    method = str(row["method"])
    if method == MOST_FREQUENT:
        return f"the {METHODS[method]}"
    if method == TRANSFER:
        algorithm, _, source = str(row["variant"]).partition(":")
        words = f"transfer from {source} ({algorithm})"
        return f"{words} with {row['model']}" if has_models else words
    if method == PROMPTED:
        return f"{row['model']} with {row['variant']}"
    words = format_method_label(method)
    if is_missing(row["model"]) or not has_models:
        return words
    return f"{words} ({row['model']})"


def _format_score(row: Row) -> str:
    return format_value_with_interval(row["score"], row["low"], row["high"], ".1f", SCORES)


def _format_delta(row: Row) -> str:
    ends = row["delta_low"], row["delta_high"]
    delta = format_value_with_interval(row["delta"], *ends, "+.1f", DIFFERENCES)
    return f"{delta} points"


def _compare_cost(row: Row, chosen: Row) -> str:
    """Compare training times by their ratio, or return "" if it is unknown or about 1."""
    spent, least = float(row["seconds"]), float(chosen["seconds"])
    if not (math.isfinite(spent) and least > 0) or spent < LEAST_RATIO * least:
        return ""
    ratio = spent / least
    times = f"{ratio:.1f}" if ratio < 10 else f"{float(f'{ratio:.2g}'):,.0f}"
    return f" and takes {times} times as long to train"
