"""Tasks whose heads are fitted before the first update."""

from __future__ import annotations

from collections.abc import Mapping

from tasktransfer.core.specs import HeadInitialization
from tasktransfer.tasks.card import Task, TaskKind

FITTED: Mapping[HeadInitialization, tuple[TaskKind, ...]] = {
    "random": (),
    "auto": ("utterance_classification",),
    # Each output of these heads scores one label.
    "logistic_regression": (
        "utterance_classification",
        "dialogue_classification",
        "multi_label",
        "multi_output",
    ),
}
"""Kinds of tasks whose heads are fitted, by ``Training.head_initialization``."""


def select_fitted_tasks(
    tasks: Mapping[str, Task], initialization: HeadInitialization
) -> dict[str, Task]:
    """Return the tasks whose heads are fitted. The heads of other tasks start at random."""
    return {name: task for name, task in tasks.items() if task.kind in FITTED[initialization]}
