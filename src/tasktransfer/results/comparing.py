"""Differences between two records of one node, except for provenance and times."""

from __future__ import annotations

from typing import Any

from tasktransfer.results.contradictions import is_stage
from tasktransfer.results.records import list_selections, select_comparable_parts
from tasktransfer.results.schema import Record


def list_differences(ours: Record, theirs: Record) -> list[str]:
    """List the differences between two records of a node, each as ``key: ours, theirs``.

    Provenance and times are ignored. So is the digest of the rows file, because equal rows may be
    packed differently. If the two trainings have different selections, only the shared part is
    compared.
    """
    shared = find_shared_tasks(ours, theirs)
    mine, other = (
        _flatten_value(_select_comparable_parts(record, shared)) for record in (ours, theirs)
    )
    absent = object()
    return [
        f"{key}: {mine.get(key, absent)!r} here, {other.get(key, absent)!r} there"
        if key in mine and key in other
        else f"{key}: only {'here' if key in mine else 'there'}"
        for key in sorted(mine.keys() | other.keys())
        if mine.get(key, absent) != other.get(key, absent)
    ]


def find_shared_tasks(ours: Record, theirs: Record) -> set[str] | None:
    """Return the tasks for which both records contain a selection on this task alone.

    Return None if a record is not a training's, or if both records have the same selections and can
    be compared completely.
    """
    if not (is_stage(ours) and is_stage(theirs)):
        return None
    here, there = {*list_selections(ours)}, {*list_selections(theirs)}
    return None if here == there else {tasks[0] for tasks in here & there if len(tasks) == 1}


def _select_comparable_parts(record: Record, shared: set[str] | None) -> dict[str, Any]:
    # Equal classifiers and tables may be packed differently, like rows.
    kept = select_comparable_parts(record)
    if "training" in kept:
        # Evaluating the untrained model (round 0) is optional and not part of the training.
        rounds = [entry for entry in kept["training"]["rounds"] if entry["round"] > 0]
        if shared is not None:
            return _limit_to_tasks(kept, rounds, shared)
        selections = [
            {**entry, "scores": entry["scores"][-len(rounds) :]}
            for entry in kept["training"]["selections"]
        ]
        kept["training"] = {"rounds": rounds, "selections": selections}
    else:
        kept["node"] = {**kept["node"], "label": None}  # each study chooses its own label
    rows = kept["rows"]
    return {**kept, "rows": rows and {**rows, "sha256": None, "file": None}}


def _limit_to_tasks(
    kept: dict[str, Any], rounds: list[dict[str, Any]], tasks: set[str]
) -> dict[str, Any]:
    """Return the parts of a training's record that depend only on its updates and some tasks."""
    selections = kept["training"]["selections"]
    return {
        "node": kept["node"],
        "losses": [entry["train_loss"] for entry in rounds],
        "dev": [{t: v for t, v in entry["dev"].items() if t in tasks} for entry in rounds],
        "chosen": {
            entry["select_on"][0]: [entry["round"], entry["dev_score"]]
            for entry in selections
            if {*entry["select_on"]} <= tasks
        },
        "results": {t: v for t, v in kept["results"].items() if t in tasks},
    }


def _flatten_value(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        parts = [(f"{path}.{key}" if path else str(key), item) for key, item in value.items()]
    elif isinstance(value, list):
        parts = [(f"{path}[{number}]", item) for number, item in enumerate(value)]
    else:
        return {path: value}
    leaves: dict[str, Any] = {} if parts else {path: type(value).__name__}
    for key, item in parts:
        leaves |= _flatten_value(item, key)
    return leaves
