"""Baselines that have not learned: their state, sentences and lookup of collapsed runs.

A baseline has not learned if its mean score is at most that of the best simple reference, or if it
has collapsed. A collapsed run predicts one label only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tasktransfer.core.references import COLLAPSED, COMPUTED_LABELS, LEARNED, NOT_BETTER, REFERENCES
from tasktransfer.designs.transfer.runs import BASELINE, format_task_name
from tasktransfer.present.columns import Row
from tasktransfer.present.html import to_records
from tasktransfer.present.numbers import (
    DIFFERENCES,
    MOST_Q,
    format_fraction,
    format_number,
    format_value_with_interval,
    is_missing,
    join_names,
)
from tasktransfer.results.frames import Frames

_PLACE = ["dataset", "model", "target"]
REFERENCE_LABELS = {**COMPUTED_LABELS, **REFERENCES}
MOST_NAMES = 12
"""Maximum number of baselines of a dataset that a sentence lists."""
MOST_SCORES = 3
"""Maximum number of baselines whose scores the answer lists in a sentence instead of a table."""
TABLE_TITLE = "Scores of baselines that have not learned"
MEANING = (
    "A baseline has not learned if its mean score is not above the best simple reference, or if it "
    "has collapsed (one answer only)."
)
LENGTH_KEYS = "training.updates or training.epochs"
_AND_REFERENCES = ", and of the best simple references, which train no language model"
UNKNOWN = "If a baseline has not learned, the study cannot show which sources help its task."


def compare_with_best_reference(frames: Frames) -> pd.DataFrame:
    """Compare each target's baselines with the best reference.

    Returns:
        Columns dataset, model, target, score, reference, reference_score and state. If references
        are part of the study, also delta, low, high and q. If the study has no references, the
        column reference is "", and a baseline counts as learned unless it has collapsed. The result
        is empty if the study has no references and no baseline has collapsed.
    """
    if "references" in frames and len(frames["references"]):
        table = frames["references"]
        return table[table["is_best"]]
    if "reference" in frames and len(frames["reference"]) and len(frames["transfer_runs"]):
        return compare_scores(frames["transfer_runs"], frames["reference"])
    collapsed = _list_collapsed_baselines(frames)
    if collapsed.empty:
        return collapsed
    runs = frames["transfer_runs"]
    means = runs[runs["algorithm"] == BASELINE].groupby(_PLACE, sort=False)["score"].mean()
    known = means.reset_index().merge(collapsed, on=_PLACE, how="left")
    return known.assign(
        reference="", reference_score=math.nan, state=known["state"].fillna(LEARNED)
    )


def _list_collapsed_baselines(frames: Frames) -> pd.DataFrame:
    """Return dataset, model, target and state of baselines that collapsed in half of their runs."""
    table = frames.get("collapsed")
    if table is None or table.empty:
        return pd.DataFrame()
    is_half = 2 * table["n_collapsed"] >= table["n_runs"]
    rows = table.loc[(table["algorithm"] == BASELINE) & is_half, _PLACE]
    return rows.assign(state=COLLAPSED)


def list_unlearned_targets(frames: Frames, dataset: str, model: str) -> list[str]:
    """Return the targets whose baselines have not learned: collapsed, or not above references.

    Baselines have collapsed if at least half of their runs predict one label only. The frames
    ``references``, ``reference`` (with ``transfer_runs``) and ``collapsed`` are used if they exist.
    """
    found: list[str] = []
    for rows in (compare_with_best_reference(frames), _list_collapsed_baselines(frames)):
        if len(rows):
            is_own = (rows["dataset"] == dataset) & (rows["model"] == model)
            found += map(str, rows.loc[is_own & (rows["state"] != LEARNED), "target"])
    return list(dict.fromkeys(found))


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
    means = scored.groupby(_PLACE, sort=False)["score"].agg(n_runs="count", score="mean")
    best = reference.loc[reference.groupby(["dataset", "target"])["score"].idxmax()]
    best = best[["dataset", "target", "reference", "score"]].rename(
        columns={"score": "reference_score"}
    )
    compared = means.reset_index().merge(best, on=["dataset", "target"])
    is_better = compared["score"] > compared["reference_score"]
    return compared.assign(state=is_better.map({True: LEARNED, False: NOT_BETTER}))


def select_learned_cells(cells: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """Return the cells whose targets have baselines that have learned.

    All cells are returned if no reference is known.

    Args:
        cells: columns of ``columns.CELLS``.
        compared: result of ``compare_with_best_reference``.
    """
    if compared.empty:
        return cells
    unlearned = compared.loc[compared["state"] != LEARNED, _PLACE]
    places = pd.MultiIndex.from_frame(unlearned)
    return cells[~pd.MultiIndex.from_frame(cells[_PLACE]).isin(places)]


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
        has_sources: whether the study plans transfers. Their answer begins with the number of
            baselines that have not learned and the consequence, which are then not repeated.
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
        count = format_unlearned_count(rows, compared)
        start = "Baselines that have not learned" if has_sources else count
        yield f"{start}: {'; '.join(lists)}."
    sentences = [MEANING]
    if "q" in compared and len(compared) > 1 and compared["q"].notna().any():
        below = rows[(rows["q"] <= MOST_Q) & (rows["difference"] < 0)]
        named = [
            f"{format_task_name(row['target'])} of {_format_place(row, has_models)}"
            for row in below.to_dict("records")
        ]
        sentences += _describe_certainty(named, compared)
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
    who = _count_baselines(above, len(compared))
    return [first, f"{who} significantly above the best simple reference of the task."]


def _count_baselines(count: int, total: int) -> str:
    """Return a subject and its verb, such as ``No baseline is`` or ``2 of 3 baselines are``."""
    if not count:
        return "No baseline is"
    return f"{format_fraction(count, total, 'baselines')} {'is' if count == 1 else 'are'}"


def format_unlearned_count(unlearned: pd.DataFrame, compared: pd.DataFrame) -> str:
    """Return a clause such as ``8 of 17 baselines have not learned``."""
    count = f"{len(unlearned)} of {len(compared)} baselines"
    who = "The baseline" if len(compared) == 1 else count
    return f"{who} {'has' if len(unlearned) == 1 else 'have'} not learned"


def describe_unlearned_baselines(
    compared: pd.DataFrame, *, has_sources: bool = True, has_table: bool = False
) -> Iterator[str]:
    """Yield a sentence about the baselines that have not learned, if there are any.

    Nothing is yielded if no reference is known.

    Args:
        compared: result of ``compare_with_best_reference``.
        has_sources: whether the study plans transfers.
        has_table: whether more than ``MOST_SCORES`` baselines have their scores in a table instead.
    """
    if compared.empty:
        return
    unlearned = select_unlearned_baselines(compared)
    if len(unlearned):
        remedy = f"Use a reference, or train for longer ({LENGTH_KEYS})."
        if has_sources:
            remedy = (
                f"{UNKNOWN} Train for longer ({LENGTH_KEYS}), so that the baselines learn their "
                "tasks."
            )
        if has_table and len(unlearned) > MOST_SCORES:
            count = format_unlearned_count(unlearned, compared)
            yield f"{count}, see the table “{TABLE_TITLE}”. {remedy}"
        else:
            yield f"{_describe_rows(unlearned, compared)}. {remedy}"


def describe_better_baselines(compared: pd.DataFrame) -> Iterator[str]:
    """Yield the number of baselines that are significantly better than the best reference.

    Nothing is yielded if no reference has an interval, or if no baseline has learned.

    Args:
        compared: result of ``compare_with_best_reference``, which may be empty.
    """
    has_learned = "q" in compared and (compared["state"] == LEARNED).any()
    if has_learned and len(tested := compared[compared["q"].notna()]):
        better = tested[(tested["q"] <= MOST_Q) & (tested["delta"] > 0)]
        who = f"The baseline is{'' if len(better) else ' not'}"
        if len(tested) > 1:
            who = _count_baselines(len(better), len(tested))
        yield (
            f"{who} significantly better than the best simple reference on the same test instances "
            "(q ≤ 0.05)."
        )


def _describe_rows(unlearned: pd.DataFrame, compared: pd.DataFrame) -> str:
    has_models = compared["model"].nunique() > 1
    named = [_describe_row(row, has_models) for row in unlearned.to_dict("records")]
    others = _AND_REFERENCES if unlearned["reference"].all() else ""
    return (
        f"{format_unlearned_count(unlearned, compared)}. Scores of baselines that have not "
        f"learned{others}: {join_names(named, MOST_NAMES)}"
    )


def _describe_row(row: Mapping[Any, Any], has_models: bool) -> str:
    parts = [f"baseline: {row['score']:.1f}"]
    if row["reference"]:
        parts.append(f"{REFERENCE_LABELS[row['reference']]}: {row['reference_score']:.1f}")
    if "low" in row:
        ends = row["low"], row["high"]
        difference = format_value_with_interval(row["delta"], *ends, "+.1f", DIFFERENCES)
        parts.append(f"difference: {difference}")
    if row["state"] == COLLAPSED:
        parts.append("collapsed")
    model = f" with {row['model']}" if has_models else ""
    return f"{row['dataset']}/{row['target']}{model} ({'; '.join(parts)})"


@dataclass(frozen=True, slots=True)
class BaselineState:
    """State of a baseline.

    Args:
        has_learned: false if the baseline has not learned; true if no reference is known.
        state: ``has learned its task (significantly above the best reference)``; empty if no
            reference is known. For a baseline that has not learned, both scores are in it.
        facts: sentences on the baseline's score and on all references.
    """

    has_learned: bool
    state: str
    facts: str


def describe_baseline(frames: Frames, place: Sequence[str], score: float) -> BaselineState:
    """Describe whether a baseline has learned its task, with the scores that show it.

    Args:
        frames: the study's frames.
        place: dataset, model and target.
        score: the baseline's mean score.
    """
    text = f"Score of the baseline: {format_number(score, '.1f')}"
    table = frames.get("references")
    if table is None or table.empty:
        table = compare_with_best_reference(frames)
    listed = _select_place(table, place)
    if listed.empty:
        return BaselineState(True, "", f"{text}.")
    collapsed = _describe_collapsed_seeds(frames["collapsed"], place)
    if not listed["reference"].iloc[0]:
        is_learned = bool(listed["state"].iloc[0] == LEARNED)
        state = "" if is_learned else f"has not learned its task ({collapsed})"
        return BaselineState(is_learned, state, f"{text}.")
    listed = listed.sort_values("reference_score", ascending=False, kind="stable")
    rows = to_records(listed)
    named = [
        f"{format_number(row['reference_score'], '.1f')} ({REFERENCE_LABELS[row['reference']]})"
        for row in rows
    ]
    best = next((row for row in rows if row.get("is_best")), rows[0])
    heading = "Reference scores" if len(named) > 1 else "Reference score"
    facts = f"{text}. {heading}: {join_names(named, len(named))}."
    if best["state"] == LEARNED:
        return BaselineState(True, _describe_learned(best, collapsed), facts)
    if best["state"] == COLLAPSED and not collapsed:
        collapsed = "collapsed"
    reference = format_number(best["reference_score"], ".1f")
    parts = [
        collapsed,
        f"score {format_number(score, '.1f')}",
        f"compared with {reference} for the best reference, {REFERENCE_LABELS[best['reference']]}",
    ]
    return BaselineState(
        False, f"has not learned its task ({', '.join(filter(None, parts))})", facts
    )


def _select_place(table: pd.DataFrame, place: Sequence[str]) -> pd.DataFrame:
    if table.empty:
        return table
    is_own = [table[key] == value for key, value in zip(_PLACE, place, strict=True)]
    return table[is_own[0] & is_own[1] & is_own[2]]


def _describe_learned(best: Row, collapsed: str) -> str:
    """Describe a baseline that has learned, in comparison with the best reference."""
    q = best.get("q")
    more = f"; {collapsed}" if collapsed else ""
    if q is None or is_missing(q):
        return f"has learned its task (above the best reference, not tested for significance{more})"
    if q <= MOST_Q:
        return f"has learned its task (significantly above the best reference{more})"
    return f"has learned its task (above the best reference, but not significantly{more})"


def _describe_collapsed_seeds(collapsed: pd.DataFrame, place: Sequence[str]) -> str:
    """Return ``collapsed in 1 of 2 seeds``, or "" if no run of the baseline has collapsed."""
    own = _select_place(collapsed, place)
    if own.empty:
        return ""
    rows = own[(own["algorithm"] == BASELINE) & (own["n_collapsed"] > 0)]
    if rows.empty:
        return ""
    count, of = int(rows["n_collapsed"].iloc[0]), int(rows["n_runs"].iloc[0])
    return f"collapsed in {count} of {of} {'seed' if of == 1 else 'seeds'}"


class CollapsedRuns:
    """Lookup of the table ``collapsed`` by cell.

    Args:
        collapsed: columns of ``columns.COLLAPSED``; without rows no run counts as collapsed.
    """

    def __init__(self, collapsed: pd.DataFrame) -> None:
        own = collapsed[collapsed["n_collapsed"] > 0] if len(collapsed) else collapsed
        rows = [{str(key): value for key, value in row.items()} for row in own.to_dict("records")]
        self._counts = {
            _build_key(row, row["algorithm"], row["source"]): (row["n_collapsed"], row["n_runs"])
            for row in rows
        }

    def describe(self, cell: Mapping[Any, Any]) -> str:
        """Describe the collapsed runs and baselines of a cell in words.

        Empty if none of the cell's runs and baselines does.
        """
        parts = [
            f"the {what}" if of == 1 else f"{count:d} of {of:d} {what}s"
            for what, (count, of) in self._select_counts(cell).items()
            if count
        ]
        verb = "predicts" if self.count(cell) == 1 else "predict"
        return f"{' and '.join(parts)} {verb} one label only" if parts else ""

    def count(self, cell: Mapping[Any, Any]) -> int:
        """Count a cell's runs and baselines that predict one label only."""
        return sum(int(count) for count, _ in self._select_counts(cell).values())

    def _select_counts(self, cell: Mapping[Any, Any]) -> dict[str, tuple[int, int]]:
        keys = {
            "run": _build_key(cell, cell["algorithm"], cell["source"]),
            "baseline": _build_key(cell, BASELINE, ""),
        }
        return {what: self._counts[key] for what, key in keys.items() if key in self._counts}


def _build_key(row: Mapping[Any, Any], algorithm: Any, source: Any) -> tuple[str, ...]:
    return (*(str(row[name]) for name in _PLACE), str(algorithm), str(source))
