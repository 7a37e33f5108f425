"""Cards of tasks on the page: the task in one sentence, and its type, labels and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tasktransfer.datasets import get_task
from tasktransfer.errors import ConfigError

_MOST_LABELS = 12
"""Maximum number of labels that a card names."""


def describe_tasks(dataset: str, tasks: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return ``description`` and ``facts`` ([name, value]) by task.

    Tasks that this version does not know, for example those of a plugin, are left out.
    """
    return {name: card for name in tasks if (card := _describe_task(dataset, name))}


def _describe_task(dataset: str, name: str) -> dict[str, Any] | None:
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
