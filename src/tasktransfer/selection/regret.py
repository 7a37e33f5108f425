"""The regret table, which compares each selector with chance and with the mean over other targets.

This module prints it with a sentence on the significant differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from tasktransfer.core.runs import Run
from tasktransfer.present.columns import format_table
from tasktransfer.present.numbers import (
    format_interval,
    format_number,
    format_p_value,
    format_score,
    is_missing,
)
from tasktransfer.results.frames import Frames
from tasktransfer.selection.declared import RANDOM, SOURCE_MEAN

GROUP = ("dataset", "model", "algorithm")
LEADING = "regret@1"
FLOORS = {"floor": "noise floor", "floor_random": "random, half the seeds"}
"""Measure that the sentence compares selectors by."""
LEVEL = 0.05


def select_leading_rows(frames: Frames) -> pd.DataFrame:
    """Return the rows of the measure with which selectors are compared."""
    rows = frames["regret"]
    return rows[(rows["measure"] == LEADING) & rows["value"].notna()]


def is_judging_run(baseline: str, row: Mapping[str, Any], run: Run) -> bool:
    """Return whether a row's selector is evaluated on a run, a transfer or a baseline."""
    is_here = row["dataset"] in ("all", run.about.get("dataset"))
    return is_here and run.model == row["model"] and run.method in (row["algorithm"], baseline)


def describe_groups(regret: pd.DataFrame) -> list[str]:
    """Describe which conclusions the intervals support, by dataset, model and algorithm."""
    return [
        f"{', '.join(filter(None, map(str, names)))}: {describe_significance(group)}"
        for names, group in regret.groupby(list(GROUP), sort=False)
    ]


def describe_significance(group: pd.DataFrame) -> str:
    """Describe which selectors differ significantly from random ranking and ``source_mean``.

    Args:
        group: the rows of one dataset, model and algorithm.
    """
    rows = group[group["measure"] == LEADING].set_index("selector")
    others = [name for name in rows.index if name != RANDOM]
    if not others:
        return "No selector was evaluated."
    tested = [name for name in others if not is_missing(rows.loc[name, f"to_{RANDOM}_q"])]
    if not tested:
        return "The selectors cannot be compared: there are too few targets for an interval."
    parts = [_describe_difference(rows, tested, RANDOM, "random ranking")]
    compared = [name for name in others if name != SOURCE_MEAN]
    if compared and SOURCE_MEAN in rows.index:
        parts.append(
            _describe_difference(rows, compared, SOURCE_MEAN, f"the selector {SOURCE_MEAN}")
        )
    once = " (with one run per transfer)" if (rows["n_seeds"] == 1).all() else ""
    return f"By {LEADING}{once}, {'; '.join(parts)}."


def _describe_difference(
    rows: pd.DataFrame, names: Sequence[str], reference: str, called: str
) -> str:
    q, difference = rows[f"to_{reference}_q"].to_dict(), rows[f"to_{reference}"].to_dict()
    better = [name for name in names if q[name] <= LEVEL]
    below = [name for name in better if difference[name] < 0]
    above = [name for name in better if name not in below]
    if not better:
        return f"no selector differs significantly from {called}"
    parts = [f"{_join_names(some)} {how} {called}" for some, how in _list_directions(below, above)]
    return ", and ".join(parts)


def _list_directions(below: list[str], above: list[str]) -> Iterator[tuple[list[str], str]]:
    for names, word in ((below, "below"), (above, "above")):
        if names:
            yield names, f"{'is' if len(names) == 1 else 'are'} significantly {word}"


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def as_text(frame: pd.DataFrame) -> str:
    """Format regret as a table and a sentence for each group."""
    parts = []
    for names, group in frame.groupby(list(GROUP), sort=False):
        first = group.iloc[0]
        title = ", ".join(filter(None, map(str, names)))
        parts += [
            f"{title}: {first['n_targets']} targets, {first['n_seeds']} seeds",
            "",
            *_format_table(group),
            "",
            describe_significance(group),
            "",
        ]
    return "\n".join(parts)


def _format_table(group: pd.DataFrame) -> list[str]:
    value = group.set_index(["selector", "measure"])["value"].to_dict()
    measures = list(dict.fromkeys(group["measure"]))
    ranks = [name for name in measures if name.startswith("ndcg") or name == "spearman"]
    # For one source, the mean equals the best.
    own = (*ranks, LEADING, "mean_regret@1", "mean_regret@1%")
    regrets = [name for name in measures if name not in own]
    leading = group[group["measure"] == LEADING].set_index("selector")
    floors = group.drop_duplicates("measure").set_index("measure")
    rows = [
        {
            "selector": _mark_missing(name, row["missing"]),
            LEADING: format_score(row["value"]),
            "95 % interval": format_interval(row["low"], row["high"], ".2f"),
            **{regret: format_score(value[name, regret]) for regret in (*regrets, *ranks)},
            "q: random": format_p_value(row[f"to_{RANDOM}_q"]),
            "q: source_mean": format_p_value(row[f"to_{SOURCE_MEAN}_q"]),
        }
        for name, row in leading.iterrows()
    ]
    empty = dict.fromkeys(rows[0], "")
    for column, name in FLOORS.items():
        numbers = {each: format_score(floors[column][each]) for each in (LEADING, *regrets, *ranks)}
        rows.append(empty | {"selector": f"({name})"} | numbers)
    return format_table(rows, left=("selector",))


def _mark_missing(name: object, missing: float) -> str:
    share = format_number(100 * missing, ".0f")
    return f"{name} ({share} % missing, last)" if missing > 0 else str(name)
