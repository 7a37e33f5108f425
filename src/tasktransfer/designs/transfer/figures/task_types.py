"""The paper's four task types (Table 1), and their look in every figure."""

from __future__ import annotations

from collections.abc import Iterable

from tasktransfer.datasets import find_task, resolve_task
from tasktransfer.present.kit.style import Look
from tasktransfer.tasks.card import TaskKind

UNKNOWN = "other"
"""Type of a task without a card, for example from your own dataset."""

_OF_KIND: dict[TaskKind, str] = {
    "utterance_classification": "utterance classification",
    "dialogue_classification": "dialogue classification",
    "multi_label": "dialogue classification",
    "multi_output": "dialogue classification",
    "span": "span extraction",
    "multiple_choice": "multiple choice",
}
_OTHERWISE = {("Friends", "reading_comprehension"): "multiple choice"}
"""The release answers it with a span; the paper's Table 1 counts it as multiple choice."""

LOOKS: dict[str, Look] = {
    "utterance classification": Look("#e69f00", "o", "-"),
    "dialogue classification": Look("#009e73", "s", "--"),
    "span extraction": Look("#cc79a7", "^", "-."),
    "multiple choice": Look("#1a1a1a", "D", ":"),
    UNKNOWN: Look("#666666", "X", "-"),
}
"""Colours of Okabe and Ito's palette that are far from the blue and red of transfer."""


def get_task_type(dataset: str, task: str) -> str:
    """Return the paper's name for the type of a task, or ``other`` if the task has no card."""
    card = find_task(dataset, task)
    if card is None:
        return UNKNOWN
    return _OTHERWISE.get(resolve_task(dataset, task), _OF_KIND.get(card.kind, UNKNOWN))


def list_types(dataset: str, tasks: Iterable[str]) -> list[str]:
    """Return the distinct types of the tasks, in the paper's order."""
    types = {get_task_type(dataset, task) for task in tasks}
    return [name for name in LOOKS if name in types]
