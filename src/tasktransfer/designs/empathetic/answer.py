"""Answer of the study in sentences: effects of fine-tuning, and of emotion and topic labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from tasktransfer.designs.empathetic.methods import (
    BASE,
    BROUGHT,
    PRETRAINED,
    PROMPTED,
    get_paper_name,
    is_ensemble,
    is_supervised,
)
from tasktransfer.designs.empathetic.statistics import LOG_PERPLEXITY
from tasktransfer.errors import format_quantity
from tasktransfer.present.columns import Row
from tasktransfer.present.html import to_records
from tasktransfer.present.numbers import (
    DIFFERENCES,
    MOST_Q,
    format_value_with_interval,
    is_missing,
    join_names,
)
from tasktransfer.results.frames import Frames

MOST = 3
"""Maximum number of differences that a sentence names; the rest are only counted."""
_UNTRAINED = {BROUGHT: "Your system", PROMPTED: "The prompted model"}
"""Group of systems that the study does not train → the words for one of them."""
SURE = f"q ≤ {MOST_Q}"


def write_answer(frames: Frames) -> list[str]:
    """Write sentences on how the methods, except controls, differ from Base.

    A difference is significant if its interval excludes 0 and q is at most ``MOST_Q``. With one run
    per method, no difference is significant.
    """
    rows = frames["differences"]
    of_training = _reverse_sign(rows[rows["method"] == PRETRAINED])
    of_labels = rows[rows["method"].map(is_supervised).astype(bool)]
    both = pd.concat([of_training, of_labels])
    constant = [
        *([] if "control_differences" in frames else _describe_missing_controls(rows)),
        *_describe_untrained(rows),
        *_describe_constant_runs(frames["measured"], both),
    ]
    if len(both) and (both["seeds"] <= 1).all():
        sentences = [*_describe_single_runs(of_training, of_labels)]
        if "control_differences" in frames:
            sentences += _describe_untested_controls(frames["control_differences"])
        return [*sentences, *constant]
    of_training, of_labels = (part[part["q"].notna()] for part in (of_training, of_labels))
    sentences = [*_describe_training(of_training), *_describe_labels(of_labels)]
    if "control_differences" in frames:
        sentences += _describe_controls(frames["control_differences"])
    return [*sentences, *constant]


def _describe_constant_runs(measured: pd.DataFrame, compared: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence that names the compared runs whose answers are constant."""
    methods = {*compared["method"], BASE} if len(compared) else set[str]()
    rows = measured[measured["constant"] & measured["method"].isin(methods)]
    runs = rows.drop_duplicates(["setting", "method", "seed"])
    if len(runs):
        names = [
            f"{get_paper_name(str(row['method']))} ({row['setting']}, seed {row['seed']})"
            for row in to_records(runs)
        ]
        yield (
            f"{format_quantity(len(runs), 'run')} of the compared methods "
            f"{'gives' if len(runs) == 1 else 'give'} the same answer for at least 99 % of the "
            f"test instances: {join_names(names)}."
        )


def _describe_single_runs(of_training: pd.DataFrame, of_labels: pd.DataFrame) -> Iterator[str]:
    """Yield sentences with the largest differences, which are not tested with one seed."""
    for rows, what in (
        (
            of_training,
            "Base differs most from Pretrained in {}. Each difference is the value for Base minus "
            "the value for Pretrained.",
        ),
        (
            of_labels,
            "the methods with emotion or topic supervision that differ most from Base are {}. "
            "Each difference is the value for the method minus the value for Base.",
        ),
    ):
        if len(rows):
            size = (rows["difference"] / (rows["high"] - rows["low"])).abs()
            first = rows.loc[size.sort_values(ascending=False, kind="stable").index]
            name = _format_score if rows is of_training else _format_named_score
            named = join_names([name(row) for row in to_records(first)], MOST)
            yield f"With one run of each method, {what.format(named)}"
    yield (
        "No difference is tested, because the intervals account for the variation between "
        "dialogues but not between training runs. Train each method with at least two seeds (for "
        "example seeds: 3)."
    )


def _reverse_sign(rows: pd.DataFrame) -> pd.DataFrame:
    """Reverse the sign of the differences, so that they are Base minus the method."""
    return rows.assign(difference=-rows["difference"], low=-rows["high"], high=-rows["low"])


def _is_significant(rows: pd.DataFrame) -> pd.Series:
    return (rows["q"] <= MOST_Q) & ((rows["low"] > 0) | (rows["high"] < 0))


def _is_better(rows: pd.DataFrame) -> pd.Series:
    """Return whether each difference means better replies.

    Lower is better for perplexity, higher is better for all other measures.
    """
    return (rows["difference"] < 0) == (rows["measure"] == LOG_PERPLEXITY)


def _describe_training(rows: pd.DataFrame) -> Iterator[str]:
    if rows.empty:
        yield "The effect of fine-tuning is unknown, because Base was not compared with Pretrained."
        return
    better, worse = (
        rows[_is_significant(rows) & _is_better(rows)],
        rows[_is_significant(rows) & ~_is_better(rows)],
    )
    if better.empty and worse.empty:
        yield (
            "No significant difference between Base and Pretrained was found "
            f"(0 of {len(rows)} measures, {SURE})."
        )
        return
    parts = [
        f"{what} {join_names([_format_score(row) for row in to_records(some)])}"
        for what, some in (("significantly improves", better), ("significantly worsens", worse))
        if len(some)
    ]
    others = len(rows) - len(better) - len(worse)
    verb = "shows" if others == 1 else "show"
    left = f"; {others} of {len(rows)} measures {verb} no significant difference" if others else ""
    yield f"Fine-tuning {' and '.join(parts)}, Base minus Pretrained{left} ({SURE})."


def _describe_labels(rows: pd.DataFrame) -> Iterator[str]:
    if rows.empty:
        yield (
            "The effect of emotion or topic supervision is unknown, because no such method was "
            "compared with Base."
        )
        return
    better, worse = (
        rows[_is_significant(rows) & _is_better(rows)],
        rows[_is_significant(rows) & ~_is_better(rows)],
    )
    if better.empty and worse.empty:
        yield (
            "No significant difference from Base was found for methods with emotion or topic "
            f"supervision (0 of {len(rows)} differences, {SURE})."
        )
        return
    parts = [
        f"{len(some)} {'is' if len(some) == 1 else 'are'} significantly {what}: "
        f"{join_names([_format_named_score(row) for row in sort_by_q(some)], MOST)}"
        for what, some in (("better", better), ("worse", worse))
        if len(some)
    ]
    yield (
        f"Of {len(rows)} differences from Base for methods with emotion or topic supervision, "
        f"{'; '.join(parts)} ({SURE})."
    )


def _describe_untrained(rows: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on each untrained system: the user's own systems and prompted models."""
    own = rows[rows["group"].isin(_UNTRAINED)]
    own = own.assign(sure=_is_significant(own), better=_is_better(own))
    for (group, name), of_system in own.groupby(["group", "name"], sort=False):
        by_verdict: dict[str, list[str]] = {}
        for row in to_records(of_system):
            by_verdict.setdefault(_compare_with_base(row), []).append(_format_score(row))
        parts = [f"{verdict} in {join_names(scores)}" for verdict, scores in by_verdict.items()]
        yield f"{_UNTRAINED[str(group)]} {name} is {'; '.join(parts)}."


def _compare_with_base(row: Row) -> str:
    """Return a verdict such as ``significantly better than Base`` for a method's difference."""
    if is_missing(row["q"]):
        return "compared with a single run of Base, and therefore not tested,"
    if row["sure"]:
        return f"significantly {'better' if row['better'] else 'worse'} than Base"
    return "not significantly different from Base"


def _describe_missing_controls(rows: pd.DataFrame) -> Iterator[str]:
    """Yield a warning if ensembles lack the controls that their evaluation needs."""
    if rows["method"].map(is_ensemble).astype(bool).any():
        yield (
            "A gain of an ensemble cannot be attributed to emotions, because the controls for its "
            "second encoder and its second training are missing. Add controls: [untrained, longer] "
            "to the config."
        )


def _describe_controls(rows: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on the ensembles that are better than both of their controls."""
    tested = rows[rows["q"].notna()]
    if tested.empty:
        return
    better = tested.assign(better=_is_significant(tested) & _is_better(tested))
    keys = ["setting", "method", "measure", "pool"]
    every = better.groupby(keys, sort=False)["better"].transform("all")
    named = to_records(better[every].drop_duplicates(keys))
    controls = join_names([str(name) for name in tested["against"].unique()])
    measures = len(tested.drop_duplicates(keys))
    if not named:
        yield (
            f"No ensemble is significantly better than its controls ({controls}) in any of "
            f"{measures} measures ({SURE}), so no gain can be attributed to the second encoder's "
            "training on emotions."
        )
        return
    names = join_names([f"{row['name']} in {row['score']}" for row in named], MOST)
    yield (
        f"In {len(named)} of {measures} measures an ensemble is significantly better than its "
        f"controls ({controls}): {names} ({SURE})."
    )


def _describe_untested_controls(rows: pd.DataFrame) -> Iterator[str]:
    """Yield the first measure of each ensemble minus its controls, which one run cannot test."""
    first = rows.drop_duplicates(["setting", "method", "against"])
    for _, of_ensemble in first.groupby(["setting", "method"], sort=False):
        minus = [
            f"from {row['against']} by {_format_difference(row)}" for row in to_records(of_ensemble)
        ]
        row = to_records(of_ensemble)[0]
        yield (
            f"In {row['score']}, {row['name']} differs {join_names(minus)}. These controls have a "
            "second encoder or a second training, but no emotion labels."
        )


def sort_by_q(rows: pd.DataFrame) -> Sequence[Row]:
    """Return the rows sorted by q, the smallest first."""
    return to_records(rows.sort_values("q", kind="stable"))


def _format_named_score(row: Row) -> str:
    return f"{row['name']} in {_format_score(row)}"


def _format_score(row: Row) -> str:
    """Return a measure and its difference, as in ``P@1,100 (+6.3 [1.6, 11.0])``."""
    of_pool = f", {row['pool']}" if row["pool"] else ""
    return f"{row['score']}{of_pool} ({_format_difference(row)})"


def _format_difference(row: Row) -> str:
    """Return a difference with its interval."""
    return format_value_with_interval(
        row["difference"], row["low"], row["high"], "+.2f", DIFFERENCES
    )
