"""State of a target's baseline in words, with its score and the best reference's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from tasktransfer.core.references import COLLAPSED, COMPUTED_LABELS, LEARNED, REFERENCES
from tasktransfer.designs.transfer.report.learned import compare_with_best_reference
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.present.columns import Row
from tasktransfer.present.html import to_records
from tasktransfer.present.numbers import format_number, is_missing
from tasktransfer.present.sentences import MOST_Q, join_names
from tasktransfer.results.frames import Frames

_KEYS = ("dataset", "model", "target")


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
    """Describe the state of a baseline: whether it has learned, with its evidence.

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
    listed = listed.sort_values("reference_score", ascending=False, kind="stable")
    labels = {**COMPUTED_LABELS, **REFERENCES}
    rows = to_records(listed)
    named = [
        f"{format_number(row['reference_score'], '.1f')} ({labels[row['reference']]})"
        for row in rows
    ]
    best = next((row for row in rows if row.get("is_best")), rows[0])
    collapsed = _describe_collapsed_seeds(frames["collapsed"], place)
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
        f"compared with {reference} for the best reference, {labels[best['reference']]}",
    ]
    return BaselineState(
        False, f"has not learned its task ({', '.join(filter(None, parts))})", facts
    )


def _select_place(table: pd.DataFrame, place: Sequence[str]) -> pd.DataFrame:
    if table.empty:
        return table
    is_own = [table[key] == value for key, value in zip(_KEYS, place, strict=True)]
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
