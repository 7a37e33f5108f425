"""The answer to the study's question, in sentences that its tables support.

A difference is significant if it survives false-discovery control over the sets (contexts resampled
as clusters) and if its interval over contexts and seeds excludes 0. Otherwise other seeds might
reverse its sign.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tasktransfer.designs.panel.names import (
    COMPARED_WITH,
    CONTROLS,
    DOMAIN_METHODS,
    EXCHANGED,
    OWN_MINUS_OTHERS,
)
from tasktransfer.present.numbers import format_interval, format_number
from tasktransfer.results.frames import Frames
from tasktransfer.stats.bootstrap import compute_q_values

LEVEL = 0.05
ONCE = "; with one run per method, this does not account for the variation between training runs"
ONE_RUN = (
    "There is one run per method, so differences between {} and the other methods are not tested. "
    "Train each method with at least two seeds (for example seeds: 3)."
)


def write_answer(frames: Frames) -> list[str]:
    """Write sentences on the panel's correlations, significant differences and domain experts.

    A study without a panel gets the sentences for its first trained method.
    """
    methods = frames.metadata.order_names("method", frames["correlations"]["method"])
    trained = [method for method in methods if method not in CONTROLS]
    if not trained:
        return ["No trained method has rated anything yet."]
    rater = trained[0] if "panel" not in trained else "panel"
    sentences = [
        _describe_correlation(frames["averages"], rater),
        _describe_exchanged_contexts(frames["averages"], rater),
        _describe_comparisons(frames["tests"], rater),
        _describe_own_experts(frames),
        _describe_constant_ratings(frames["correlations"], rater),
    ]
    return [sentence for sentence in sentences if sentence]


def _describe_correlation(averages: pd.DataFrame, rater: str) -> str:
    """Describe a method's average correlation over all rated sets."""
    found = averages[(averages["method"] == rater) & (averages["over"] == "all")]
    if found.empty:
        return f"The method {rater} has no average over all rated sets."
    row = found.iloc[0]
    once = ONCE if row["seeds"] < 2 else ""
    what = (
        f"Averaged over {_format_sets(int(row['sets']))}, the method {rater} has a Spearman "
        f"correlation (× 100) of {format_number(row['value'], '.1f')} with human ratings"
    )
    if row["low"] > 0 or row["high"] < 0:
        return f"{what} (95 % interval {format_interval(row['low'], row['high'], '.1f')}{once})."
    ends = format_interval(row["low"], row["high"], ".1f")
    return f"{what}, which does not differ significantly from 0 (95 % interval {ends}{once})."


def _describe_exchanged_contexts(averages: pd.DataFrame, rater: str) -> str:
    """Describe the average correlation with exchanged contexts, or return "" without ratings."""
    method = f"{rater}{EXCHANGED}"
    found = averages[(averages["method"] == method) & (averages["over"] == "all")]
    if found.empty:
        return ""
    row = found.iloc[0]
    ends = format_interval(row["low"], row["high"], ".1f")
    return (
        "If each response is rated with the context of another item, the correlation of the method "
        f"{rater} is {format_number(row['value'], '.1f')} (95 % interval {ends}). Only the "
        "responses can contribute to this correlation."
    )


def _describe_constant_ratings(correlations: pd.DataFrame, rater: str) -> str:
    """Return a sentence that names methods with constant ratings, or "" if there are none."""
    methods = {rater, *COMPARED_WITH} - {*CONTROLS}
    rows = correlations[(correlations["constant"] > 0) & correlations["method"].isin(methods)]
    if rows.empty:
        return ""
    named = [
        f"{row['method']} on {row['set']} ({row['constant']} of {row['seeds']} runs)"
        for row in rows.to_dict("records")
    ]
    return (
        "Some methods give all items the same rating, which counts as a correlation of 0: "
        f"{_join_names(named)}."
    )


def _describe_comparisons(tests: pd.DataFrame, rater: str) -> str:
    """Return sentences on the sets on which a method differs significantly from the others."""
    mine = tests[(tests["method"] == rater) & (tests["seed"] == "mean")]
    if len(mine) and mine["q"].isna().all():
        return ONE_RUN.format(rater)
    parts, unsure = [], []
    for against in mine["against"].unique():
        some = mine[mine["against"] == against]
        sure = some[is_significant(some)]
        above, below = (sure[sure["difference"] * sign > 0]["set"] for sign in (1, -1))
        if sure.empty:
            unsure.append(against)
            continue
        text = [
            f"significantly {word} than {against} on {len(names)} of {len(some)} rated sets "
            f"({', '.join(names)})"
            for word, names in (("better", above), ("worse", below))
            if len(names)
        ]
        parts.append(" and ".join(text))
    none = (
        f"does not differ significantly from {_join_names(unsure)} on any rated set"
        if unsure
        else ""
    )
    if not parts and not unsure:
        return ""
    if not parts:
        return f"The method {rater} {none}."
    rest = f" The method {rater} {none}." if unsure else ""
    return f"The method {rater} correlates with human ratings {_join_names(parts)}.{rest}"


def is_significant(rows: pd.DataFrame) -> pd.Series:
    """Return a mask of the rows of the table ``tests`` whose difference is significant."""
    away = (rows["seeds_low"] > 0) | (rows["seeds_high"] < 0)
    return (rows["q"] <= LEVEL) & away


def _describe_own_experts(frames: Frames) -> str:
    """Describe how experts rate the sets of their own domains, or return "" without ratings."""
    every = frames["experts"]
    fan = next((method for method in DOMAIN_METHODS if method in set(every["method"])), "")
    some = every[(every["method"] == fan) & (every["expert"] == OWN_MINUS_OTHERS)]
    some = some[some["seeds"] > 1]
    if some.empty:
        return ""
    q = pd.Series(compute_q_values(some["p"]), some.index)
    sure = some[(q <= LEVEL) & ((some["low"] > 0) | (some["high"] < 0))]
    above, below = (sure[sure["value"] * sign > 0]["set"] for sign in (1, -1))
    whose = f"In the method {fan}, the expert for a rated set's own domain"
    if sure.empty:
        return (
            f"{whose} does not correlate significantly better or worse with human ratings than the "
            f"other experts on average, on any of {_format_sets(len(some))}."
        )
    text = [
        f"significantly {word} than the other experts on average on {len(names)} of "
        f"{_format_sets(len(some))} in the trained domains ({', '.join(names)})"
        for word, names in (("better", above), ("worse", below))
        if len(names)
    ]
    return f"{whose} correlates with human ratings {' and '.join(text)}."


def _format_sets(count: int) -> str:
    return "1 rated set" if count == 1 else f"{count} rated sets"


def _join_names(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
