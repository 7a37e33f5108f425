"""Table of the algorithms' mean changes of the score, for the open part of the answer."""

from __future__ import annotations

import pandas as pd

from tasktransfer.designs.transfer.tables.names import get_algorithm_label
from tasktransfer.errors import format_quantity
from tasktransfer.present.columns import (
    Column,
    Head,
    Row,
    make_estimate_column,
    make_p_value_column,
    make_text_column,
)
from tasktransfer.present.html import HtmlTable, build_table
from tasktransfer.present.numbers import DIFFERENCES, is_missing
from tasktransfer.present.sentences import MOST_Q, excludes_zero

WEAK = "weak evidence"


def build_changes_table(summary: pd.DataFrame) -> HtmlTable | None:
    """Return a table with one line per dataset, model and algorithm, or None without any mean.

    The algorithm with the highest mean change of a dataset and model is its first line. Means
    without a joint interval have their interval over seeds.

    Args:
        summary: columns of ``columns.SUMMARY``, in the study's order.
    """
    known = summary[summary["mean"].notna()]
    if known.empty:
        return None
    groups = known.groupby(["dataset", "model"], sort=False)
    ordered = pd.concat(
        group.sort_values("mean", ascending=False, kind="stable") for _, group in groups
    )
    is_joint = ordered["joint_low"].notna()
    ends = {
        end: ordered[f"joint_{end}"].where(is_joint, ordered[f"mean_{end}"])
        for end in ("low", "high")
    }
    rows = ordered.assign(**ends)
    verdicts = rows.apply(describe_change, axis="columns")
    names = [make_text_column("dataset", "Dataset")]
    if known["model"].nunique() > 1:
        names.append(make_text_column("model", "Model"))
    names.append(make_text_column("algorithm", "Algorithm", get_algorithm_label))
    return build_table(
        "changes",
        "Mean change of the score by algorithm",
        _write_caption(rows, has_weak=bool(verdicts.str.startswith(WEAK).any())),
        rows,
        (
            *names,
            make_estimate_column("mean", "Mean change, points", "+.1f", bounds=DIFFERENCES),
            make_p_value_column("joint_q", "q"),
            Column(Head("Result"), describe_change),
        ),
        keys=len(names),
    )


def describe_change(row: Row) -> str:
    """Return the result of a mean change in words: ``significant gain``, and so on."""
    what = "gain" if row["mean"] > 0 else "loss"
    if is_missing(row["joint_q"]):
        return "not tested (one seed)" if row["n_seeds"] == 1 else "not tested"
    if row["joint_q"] <= MOST_Q:
        return f"significant {what}"
    if excludes_zero(row["joint_low"], row["joint_high"]):
        return f"{WEAK} of a {what}"
    return "no significant change"


def _write_caption(rows: pd.DataFrame, has_weak: bool) -> str:
    tested = int(rows["joint_q"].notna().sum())
    parts = [
        "Change from the baseline, averaged over all pairs of source and target, with its 95 % "
        "interval."
    ]
    if tested:
        means = format_quantity(tested, "mean")
        parts.append(f"A change is significant if q ≤ {MOST_Q}, adjusted for {means}.")
    if has_weak:
        parts.append(f"Evidence is weak if the interval does not contain 0, but q > {MOST_Q}.")
    if rows["joint_low"].isna().any() and rows["low"].notna().any():
        parts.append("Intervals of means that are not tested are over seeds only.")
    return " ".join(parts)
