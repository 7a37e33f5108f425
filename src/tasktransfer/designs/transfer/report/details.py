"""Details on the page: learning curves of single runs, and cards of tasks.

A card has the task in one sentence, and its type, labels and metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import pandas as pd

from tasktransfer.datasets import get_task
from tasktransfer.errors import ConfigError
from tasktransfer.present.numbers import round_significant

RunKey = tuple[Any, ...]
"""Dataset, model, algorithm, source, target and seed of a run."""
Curve = list[float | None]
_KEYS = ("dataset", "model", "algorithm", "source", "target", "seed")
_MEASURES = ("loss", "dev_score")
_MOST_LABELS = 12
"""Maximum number of labels that a card lists."""


def get_run_key(row: Mapping[str, Any]) -> RunKey:
    """Return the key of the run in a row of ``transfer_runs`` or ``training_curves``."""
    return tuple(row[key] for key in _KEYS)


def group_curves(curves: pd.DataFrame) -> dict[RunKey, list[Curve]]:
    """Map each run to its losses and dev scores by round, with None for a missing loss."""
    ordered = curves.sort_values("round", kind="stable")
    return {
        key: [[round_significant(value) for value in rows[measure]] for measure in _MEASURES]
        for key, rows in ordered.groupby(list(_KEYS), sort=False)
    }


class TaskDetails(TypedDict):
    """Description of a task, and facts on it as [name, value]."""

    description: str
    facts: list[list[str]]


def describe_tasks(dataset: str, tasks: Sequence[str]) -> dict[str, TaskDetails]:
    """Map each task to the details that its card in the report shows.

    Tasks without a card, for example those of a plugin that is not loaded, are left out.
    """
    return {name: card for name in tasks if (card := _describe_task(dataset, name))}


def _describe_task(dataset: str, name: str) -> TaskDetails | None:
    try:
        task = get_task(dataset, name)
    except ConfigError:
        return None
    named = ", ".join(task.labels[:_MOST_LABELS])
    more = f" and {len(task.labels) - _MOST_LABELS} more" if len(task.labels) > _MOST_LABELS else ""
    facts = (
        ("answer", task.kind.replace("_", " ")),
        (f"{task.classes} labels", f"{named}{more}" if task.labels else ""),
        ("score", ", ".join(task.paper_metrics or [spec.key for spec in task.metrics])),
        ("source", task.citation),
        ("licence", task.licence),
    )
    return {"description": task.description, "facts": [list(fact) for fact in facts if fact[1]]}
