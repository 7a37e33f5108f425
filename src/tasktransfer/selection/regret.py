"""The regret table, which compares each selector with chance and with the mean over other targets.

This module prints it with a sentence on the significant differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd
import pyarrow as pa

from tasktransfer.present.numbers import (
    format_interval,
    format_number,
    format_p_value,
    format_score,
    is_missing,
)
from tasktransfer.present.text import format_table
from tasktransfer.results.store import Column, Columns

GROUP = ("dataset", "model", "algorithm")
LEADING = "regret@1"
"""Measure that the sentence compares selectors by."""
LEVEL = 0.05
RANDOM, SOURCE_MEAN = "random", "source_mean"


def _list_difference_columns(reference: str) -> tuple[Column, ...]:
    return (
        (f"to_{reference}", pa.float64(), f"value minus that of {reference}, paired by target"),
        (f"to_{reference}_low", pa.float64(), "lower end of its 95 % interval"),
        (f"to_{reference}_high", pa.float64(), "upper end of that interval"),
        (f"to_{reference}_p", pa.float64(), "two-sided p of no difference; NaN without a test"),
        (f"to_{reference}_q", pa.float64(), "p adjusted for the selectors of the group"),
    )


COLUMNS: Columns = (
    ("dataset", pa.string(), "dataset of targets and sources; `all` for all datasets together"),
    ("model", pa.string(), "name of the model in the config"),
    ("algorithm", pa.string(), "transfer algorithm whose scores evaluate the rankings"),
    ("selector", pa.string(), "selector that ranks the sources"),
    (
        "measure",
        pa.string(),
        "regret@k (best of k) or mean_regret@k, in points or with %; ndcg_rank, ndcg_percent, "
        "ndcg_fraction; spearman",
    ),
    ("value", pa.float64(), "mean over targets; ties of a selector are in random order"),
    ("low", pa.float64(), "lower end of its 95 % interval over targets and seeds"),
    ("high", pa.float64(), "upper end of the interval; NaN for one target"),
    (
        "floor",
        pa.float64(),
        "noise floor: ranked by half of the seeds, evaluated by the others; NaN for one seed",
    ),
    *_list_difference_columns(RANDOM),
    *_list_difference_columns(SOURCE_MEAN),
    ("n_targets", pa.int64(), "number of targets with at least two sources"),
    ("n_seeds", pa.int64(), "number of seeds of the evaluating scores"),
    ("missing", pa.float64(), "fraction of pairs without a value, 0-1; they are ranked last"),
    ("seconds", pa.float64(), "total time to compute its values, seconds; NaN if unknown"),
)


def describe_significance(group: pd.DataFrame) -> str:
    """Name the selectors that differ significantly (by q) from chance and from ``source_mean``.

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
    parts = [_describe_difference(rows, tested, RANDOM, "random")]
    compared = [name for name in others if name != SOURCE_MEAN]
    if compared and SOURCE_MEAN in rows.index:
        parts.append(_describe_difference(rows, compared, SOURCE_MEAN, SOURCE_MEAN))
    once = " (with one run per transfer)" if (rows["n_seeds"] == 1).all() else ""
    return f"By {LEADING}{once}: {'; '.join(parts)}."


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
    """Format a table and a sentence for each group."""
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
    floors = group.drop_duplicates("measure").set_index("measure")["floor"]
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
    of_noise = {regret: format_score(floors[regret]) for regret in (LEADING, *regrets, *ranks)}
    rows.append(dict.fromkeys(rows[0], "") | {"selector": "(noise floor)"} | of_noise)
    return format_table(rows, left=("selector",))


def _mark_missing(name: object, missing: float) -> str:
    share = format_number(100 * missing, ".0f")
    return f"{name} ({share} % missing, last)" if missing > 0 else str(name)
