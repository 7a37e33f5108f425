"""The answer to the study's question, in sentences that its tables bear.

A difference is claimed where it survives the control of false discoveries over the sets (contexts
drawn whole) and the interval over contexts and seeds leaves out 0: else other trainings might have
come out the other way.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tasktransfer.designs.panel.names import COMPARED_WITH, CONTROLS, FANS, OWN_MINUS_OTHERS
from tasktransfer.present.view import View
from tasktransfer.stats.false_discovery import false_discovery
from tasktransfer.tables.numbers import interval, number

LEVEL = 0.05
ONCE = "; one run of each training, so that this says nothing of others"
ONE_RUN = (
    "One run of each training is there, so no difference between {} and the others is tested: "
    "train two seeds or more (seeds: 3)."
)


def answer(view: View) -> list[str]:
    """Whether the panel rates as people do, whether better than what it is compared with, and
    whether a domain's own expert is worth having."""
    methods = view.metadata.ordered("method", view["correlations"]["method"])
    trained = [method for method in methods if method not in CONTROLS]
    if not trained:
        return ["Nothing is rated yet by anything that was trained."]
    rater = trained[0] if "panel" not in trained else "panel"
    sentences = [
        _rates(view["averages"], rater),
        _compared(view["tests"], rater),
        _own(view),
        _constant(view["correlations"], rater),
    ]
    return [sentence for sentence in sentences if sentence]


def _rates(averages: pd.DataFrame, rater: str) -> str:
    """How the method correlates, on average over all sets."""
    found = averages[(averages["method"] == rater) & (averages["over"] == "all")]
    if found.empty:
        return f"Of {rater} no average over all rated sets is there."
    row = found.iloc[0]
    once = ONCE if row["seeds"] < 2 else ""
    what = (
        f"Over {_sets(int(row['sets']))} {rater} correlates with human ratings by "
        f"{number(row['value'], '.1f')} on average"
    )
    if row["low"] > 0 or row["high"] < 0:
        return f"{what} (95 % interval {interval(row['low'], row['high'], '.1f')}{once})."
    ends = interval(row["low"], row["high"], ".1f")
    return f"{what}, which is not told apart from none (95 % interval {ends}{once})."


def _constant(correlations: pd.DataFrame, rater: str) -> str:
    """Return which ratings behind these sentences are one value for all items."""
    methods = {rater, *COMPARED_WITH} - {*CONTROLS}
    rows = correlations[(correlations["constant"] > 0) & correlations["method"].isin(methods)]
    if rows.empty:
        return ""
    named = [
        f"{row['method']} on {row['set']} ({row['constant']} of {row['seeds']} runs)"
        for row in rows.to_dict("records")
    ]
    return (
        f"One value for all items is given, and counts as a correlation of 0, by {_listed(named)}."
    )


def _compared(tests: pd.DataFrame, rater: str) -> str:
    """On which sets it is above and below each of the others."""
    mine = tests[(tests["method"] == rater) & (tests["seed"] == "mean")]
    if len(mine) and mine["q"].isna().all():
        return ONE_RUN.format(rater)
    parts, unsure = [], []
    for against in [name for name in COMPARED_WITH if name in set(mine["against"])]:
        some = mine[mine["against"] == against]
        sure = some[claimed(some)]
        above, below = (sure[sure["difference"] * sign > 0]["set"] for sign in (1, -1))
        if sure.empty:
            unsure.append(against)
            continue
        text = [
            f"{word} {against} on {len(names)} of {len(some)} rated sets ({', '.join(names)})"
            for word, names in (("above", above), ("below", below))
            if len(names)
        ]
        parts.append(" and ".join(text))
    none = "no difference is told apart from none"
    if not parts and not unsure:
        return ""
    if not parts:
        return f"Between {rater} and {_listed(unsure)} {none} on any rated set."
    rest = f"; between it and {_listed(unsure)} {none}" if unsure else ""
    return f"By their correlations {rater} is {_listed(parts)}{rest}."


def claimed(rows: pd.DataFrame) -> pd.Series:
    """Whether a difference may be claimed, row by row of the table ``tests``."""
    away = (rows["seeds_low"] > 0) | (rows["seeds_high"] < 0)
    return (rows["q"] <= LEVEL) & away


def _own(view: View) -> str:
    """Whether experts rate the sets of their domains better than the others do."""
    every = view["experts"]
    fan = next((method for method in FANS if method in set(every["method"])), "")
    some = every[(every["method"] == fan) & (every["expert"] == OWN_MINUS_OTHERS)]
    some = some[some["seeds"] > 1]
    if some.empty:
        return ""
    q = pd.Series(false_discovery(some["p"]), some.index)
    sure = some[(q <= LEVEL) & ((some["low"] > 0) | (some["high"] < 0))]
    above, below = (sure[sure["value"] * sign > 0]["set"] for sign in (1, -1))
    whose = f"The own expert of a set's domain, in {fan},"
    if sure.empty:
        return f"{whose} is told apart from the other experts' mean on none of {_sets(len(some))}."
    text = [
        f"{word} the other experts' mean on {len(names)} ({', '.join(names)})"
        for word, names in (("above", above), ("below", below))
        if len(names)
    ]
    return f"{whose} is {' and '.join(text)} of {_sets(len(some))} of trained domains."


def _sets(count: int) -> str:
    return "1 rated set" if count == 1 else f"{count} rated sets"


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
