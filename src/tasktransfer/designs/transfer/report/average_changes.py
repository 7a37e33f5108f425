"""Sentences on the algorithms' mean changes of the score, for each dataset and model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from tasktransfer.designs.transfer.tables.names import get_algorithm_label
from tasktransfer.present.numbers import DIFFERENCES, format_named_p, is_missing
from tasktransfer.present.sentences import MOST_Q, format_value_with_interval, join_names

Row = Mapping[Any, Any]


def describe_average_changes(summary: pd.DataFrame) -> Iterator[str]:
    """Yield one or two sentences per dataset and model on the algorithms that raise the mean score.

    The first sentence names the algorithm with the highest mean change. The second one names all
    others whose mean change is significant.

    Args:
        summary: columns of ``columns.SUMMARY``, in the study's order.
    """
    known = summary[summary["mean"].notna()]
    has_models = known["model"].nunique() > 1
    for (dataset, model), group in known.groupby(["dataset", "model"], sort=False):
        rows = group.sort_values("mean", ascending=False, kind="stable").to_dict("records")
        place = f"{dataset} with {model}" if has_models else dataset
        yield f"{place}: {_describe_highest(rows)}{_describe_others(rows)}"


def format_mean_change(row: Row) -> str:
    """Format a mean change: ``+2.5 points [+1.3, +3.6], q = 0.073, not significant``.

    Args:
        row: a row of the table ``summary``. Without an interval over seeds and dialogues, the
            interval over seeds is printed, and the change is called untested.
    """
    if not is_missing(row["joint_q"]):
        verdict = "significant" if row["joint_q"] <= MOST_Q else "not significant"
        return f"{_format_size(row)}, {format_named_p('q', row['joint_q'])}, {verdict}"
    why = "one seed" if row["n_seeds"] == 1 else "interval over seeds only"
    if row["n_seeds"] > 1 and is_missing(row["mean_low"]):
        why = "no interval"
    return f"{_format_size(row)} ({why}, not tested)"


def _format_size(row: Row) -> str:
    part = "mean" if is_missing(row["joint_low"]) else "joint"
    size = format_value_with_interval(
        row["mean"], row[f"{part}_low"], row[f"{part}_high"], "+.1f", DIFFERENCES
    )
    value, bracket, ends = size.partition(" [")
    return f"{value} points{bracket}{ends}"


def _describe_highest(rows: Sequence[Row]) -> str:
    best, count = rows[0], len(rows)
    label, change = get_algorithm_label(str(best["algorithm"])), format_mean_change(best)
    positive = sum(row["mean"] > 0 for row in rows)
    if count == 1:
        return f"The mean change with {label} is {change}."
    if positive == 1:
        return f"{label} is the only algorithm with a positive mean change: {change}."
    if positive == 0:
        who = "No algorithm has a positive mean change"
    elif positive == count:
        who = f"{'Both' if count == 2 else f'All {count}'} algorithms have positive mean changes"
    else:
        who = f"{positive} of {count} algorithms have positive mean changes"
    return f"{who}. The highest is with {label}: {change}."


def _describe_others(rows: Sequence[Row]) -> str:
    """Describe the other significant changes after the first row, or return "" without any."""
    best, *others = rows
    named = [
        f"{get_algorithm_label(str(row['algorithm']))} ({_format_size(row)}, "
        f"{format_named_p('q', row['joint_q'])})"
        for row in others
        if row["joint_q"] <= MOST_Q
    ]
    if not named:
        return ""
    too = " too" if best["joint_q"] <= MOST_Q else ""
    subject = "change with" if len(named) == 1 else "changes with"
    verb = "is" if len(named) == 1 else "are"
    return f" The mean {subject} {join_names(named, len(named))} {verb} significant{too}."
