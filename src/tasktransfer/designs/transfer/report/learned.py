"""Sentences and tables on baselines that have not learned.

Their mean score is at most that of the best simple reference, or they have collapsed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from tasktransfer.core.references import COLLAPSED, COMPUTED_LABELS, LEARNED, NOT_BETTER, REFERENCES
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.designs.transfer.tables.names import format_task_name
from tasktransfer.present.numbers import DIFFERENCES
from tasktransfer.present.sentences import (
    MOST_Q,
    format_fraction,
    format_value_with_interval,
    join_names,
)
from tasktransfer.results.frames import Frames

_TARGET = ["dataset", "target"]
MOST_NAMES = 12
"""Maximum number of baselines of a dataset that a sentence lists."""
MOST_SCORES = 3
"""Maximum number of baselines whose scores the answer lists in a sentence instead of a table."""
TABLE_TITLE = "Scores of baselines that have not learned"
MEANING = (
    "A baseline has not learned if its mean score is not above the best simple reference, or if it "
    "has collapsed (one answer only)."
)
UNKNOWN = "If a baseline has not learned, the study cannot show which sources help its task."


def compare_with_best_reference(frames: Frames) -> pd.DataFrame:
    """Compare each target's baselines with the best reference.

    Returns:
        Columns dataset, model, target, score, reference, reference_score and state. If references
        are part of the study, also delta, low, high and q. Empty if no reference was computed.
    """
    if "references" in frames and len(frames["references"]):
        table = frames["references"]
        return table[table["is_best"]]
    if "reference" in frames and len(frames["reference"]) and len(frames["transfer_runs"]):
        return compare_scores(frames["transfer_runs"], frames["reference"])
    return pd.DataFrame()


def list_unlearned_targets(frames: Frames, dataset: str, model: str) -> list[str]:
    """Return the targets whose baselines have not learned: collapsed, or not above references.

    Baselines have collapsed if at least half of their runs predict one label only.
    """
    compared = compare_with_best_reference(frames)
    collapsed = frames["collapsed"]
    found: list[str] = []
    if len(compared):
        found += _select_targets(compared[compared["state"] != LEARNED], dataset, model)
    half = (collapsed["algorithm"] == BASELINE) & (
        2 * collapsed["n_collapsed"] >= collapsed["n_runs"]
    )
    return list(dict.fromkeys([*found, *_select_targets(collapsed[half], dataset, model)]))


def _select_targets(rows: pd.DataFrame, dataset: str, model: str) -> list[str]:
    own = rows[(rows["dataset"] == dataset) & (rows["model"] == model)]
    return [str(target) for target in own["target"]]


def compare_scores(runs: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Compare baselines with the best reference by mean scores, without intervals.

    Args:
        runs: columns of ``columns.RUNS``.
        reference: columns of ``tables.reference``.

    Returns:
        One row per compared baseline: dataset, model, target, n_runs, score (mean over runs),
        reference, reference_score and state.
    """
    scored = runs[(runs["algorithm"] == BASELINE) & runs["score"].notna()]
    means = scored.groupby(["dataset", "model", "target"], sort=False)["score"].agg(
        n_runs="count", score="mean"
    )
    best = reference.loc[reference.groupby(_TARGET)["score"].idxmax()]
    best = best[[*_TARGET, "reference", "score"]].rename(columns={"score": "reference_score"})
    compared = means.reset_index().merge(best, on=_TARGET)
    is_better = compared["score"] > compared["reference_score"]
    return compared.assign(state=is_better.map({True: LEARNED, False: NOT_BETTER}))


def select_learned_cells(cells: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """Return the cells whose targets have baselines that have learned.

    All cells are returned if the study has no references with intervals.

    Args:
        cells: columns of ``columns.CELLS``.
        compared: result of ``compare_with_best_reference``.
    """
    if "q" not in compared:
        return cells
    names = ["dataset", "model", "target"]
    unlearned = compared.loc[compared["state"] != LEARNED, names]
    places = pd.MultiIndex.from_frame(unlearned)
    return cells[~pd.MultiIndex.from_frame(cells[names]).isin(places)]


def select_unlearned_baselines(compared: pd.DataFrame) -> pd.DataFrame:
    """Return baselines that have not learned, sorted by distance below the reference.

    Args:
        compared: result of ``compare_with_best_reference``, which may be empty.

    Returns:
        The rows of ``compared`` with a column ``difference``: score minus the reference's, points.
    """
    if compared.empty:
        return compared
    rows = compared[compared["state"] != LEARNED]
    below = rows.assign(difference=rows["score"] - rows["reference_score"])
    return below.sort_values("difference", kind="stable")


def describe_unlearned_list(compared: pd.DataFrame, *, has_sources: bool = True) -> Iterator[str]:
    """Yield the names of all baselines that have not learned, then what that means.

    Nothing is yielded if all have learned. If references have intervals, the second text says which
    differences are significant.

    Args:
        compared: result of ``compare_with_best_reference``.
        has_sources: whether the study plans transfers.
    """
    rows = select_unlearned_baselines(compared)
    if rows.empty:
        return
    has_models = compared["model"].nunique() > 1
    groups: dict[str, list[str]] = {}
    for row in rows.to_dict("records"):
        collapsed = " (collapsed)" if row["state"] == COLLAPSED else ""
        name = f"{format_task_name(row['target'])}{collapsed}"
        groups.setdefault(_format_place(row, has_models), []).append(name)
    if len(compared) == 1:
        place, (name,) = next(iter(groups.items()))
        yield f"The baseline of {name} ({place}) has not learned its task."
    else:
        lists = [f"{join_names(names, MOST_NAMES)} of {place}" for place, names in groups.items()]
        yield f"{format_unlearned_count(rows, compared)}: {'; '.join(lists)}."
    sentences = [MEANING]
    if "q" in compared and len(compared) > 1 and compared["q"].notna().any():
        below = rows[(rows["q"] <= MOST_Q) & (rows["difference"] < 0)]
        named = [
            f"{format_task_name(row['target'])} of {_format_place(row, has_models)}"
            for row in below.to_dict("records")
        ]
        sentences += _describe_certainty(named, compared)
    if has_sources:
        sentences.append(UNKNOWN)
    yield " ".join(sentences)


def _format_place(row: Mapping[Any, Any], has_models: bool) -> str:
    return f"{row['dataset']} with {row['model']}" if has_models else str(row["dataset"])


def _describe_certainty(below: Sequence[str], compared: pd.DataFrame) -> list[str]:
    """Return two sentences on the baselines that differ significantly from their reference."""
    first = "No baseline is significantly below its best simple reference (q > 0.05)."
    if below:
        first = (
            "Baselines that are significantly below their best simple reference (q ≤ 0.05): "
            f"{join_names(below, MOST_NAMES)}."
        )
    above = int(
        ((compared["q"] <= MOST_Q) & (compared["score"] > compared["reference_score"])).sum()
    )
    who = format_fraction(above, len(compared), "baselines").capitalize()
    verb = "is" if above == 1 else "are"
    return [first, f"{who} {verb} significantly above the best simple reference of the task."]


def format_unlearned_count(unlearned: pd.DataFrame, compared: pd.DataFrame) -> str:
    """Return a clause such as ``8 of 17 baselines have not learned``."""
    count = f"{len(unlearned)} of {len(compared)} baselines"
    who = "The baseline" if len(compared) == 1 else count
    return f"{who} {'has' if len(unlearned) == 1 else 'have'} not learned"


def describe_unlearned_baselines(
    compared: pd.DataFrame, *, has_sources: bool = True, has_table: bool = False
) -> Iterator[str]:
    """Yield a sentence about the baselines that have not learned, if there are any.

    If references have intervals, a second sentence counts the baselines that are significantly
    better. Nothing is yielded if no reference is known.

    Args:
        compared: result of ``compare_with_best_reference``.
        has_sources: whether the study plans transfers.
        has_table: whether more than ``MOST_SCORES`` baselines have their scores in a table instead.
    """
    if compared.empty:
        return
    unlearned = select_unlearned_baselines(compared)
    if len(unlearned):
        remedy = "Use a reference, or train for more updates (training.updates)."
        if has_sources:
            remedy = (
                f"{UNKNOWN} Increase training.updates, so that the baselines learn their tasks."
            )
        if has_table and len(unlearned) > MOST_SCORES:
            count = format_unlearned_count(unlearned, compared)
            yield f"{count}, see the table “{TABLE_TITLE}”. {remedy}"
        else:
            yield f"{_describe_rows(unlearned, compared)}. {remedy}"
    if "q" in compared and len(tested := compared[compared["q"].notna()]):
        better = tested[(tested["q"] <= MOST_Q) & (tested["delta"] > 0)]
        if len(tested) == 1:
            who = f"The baseline is {'' if len(better) else 'not '}"
        else:
            who = format_fraction(len(better), len(tested), "baselines").capitalize()
            who += " is " if len(better) == 1 else " are "
        yield (
            f"{who}significantly better than the best simple reference on the same test instances "
            "(q ≤ 0.05)."
        )


def _describe_rows(unlearned: pd.DataFrame, compared: pd.DataFrame) -> str:
    has_models = compared["model"].nunique() > 1
    named = [_describe_row(row, has_models) for row in unlearned.to_dict("records")]
    return (
        f"{format_unlearned_count(unlearned, compared)}. Scores of baselines that have not "
        "learned, and of the best simple references, which train no language model: "
        f"{join_names(named, MOST_NAMES)}"
    )


def _describe_row(row: Mapping[Any, Any], has_models: bool) -> str:
    label = {**COMPUTED_LABELS, **REFERENCES}[str(row["reference"])]
    parts = [f"baseline: {row['score']:.1f}", f"{label}: {row['reference_score']:.1f}"]
    if "low" in row:
        ends = row["low"], row["high"]
        difference = format_value_with_interval(row["delta"], *ends, "+.1f", DIFFERENCES)
        parts.append(f"difference: {difference}")
    if row["state"] == COLLAPSED:
        parts.append("collapsed")
    model = f" with {row['model']}" if has_models else ""
    return f"{row['dataset']}/{row['target']}{model} ({'; '.join(parts)})"
