"""The datasets: a folder each, with its task cards, its reader and its sizes."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from tasktransfer.datasets.dailydialog import cards as dailydialog
from tasktransfer.datasets.friends import cards as friends
from tasktransfer.errors import ConfigError
from tasktransfer.tasks.card import Task

DATASETS: dict[str, dict[str, Task]] = {
    "DailyDialog": {task.name: task for task in dailydialog.TASKS},
    "Friends": {task.name: task for task in friends.TASKS},
}
"""Dataset → task name → card, in the release's order."""

ALL_TASKS: tuple[Task, ...] = (*dailydialog.TASKS, *friends.TASKS)


def add(dataset: Any) -> None:
    """Make a dataset from outside the package one of ``DATASETS`` in this process; it has a
    ``name`` and ``tasks`` (name → card)."""
    DATASETS[dataset.name] = dict(dataset.tasks)


def get_task(dataset: str, name: str) -> Task:
    """The card of task ``name`` of ``dataset``, both by their full names.

    Raises ConfigError for an unknown dataset or task, with the name that was probably meant: a
    full name for a short one, the nearest for a misspelt one, the right dataset for a stray task.
    """
    tasks = DATASETS.get(dataset)
    if tasks is None:
        raise ConfigError(
            f"unknown dataset {dataset!r}{_did_you_mean(dataset, DATASETS)}; "
            f"the datasets are {', '.join(DATASETS)}"
        )
    task = tasks.get(name)
    if task is None:
        raise ConfigError(
            f"unknown task {name!r} of {dataset}{_task_hint(dataset, name)}; "
            f"the tasks of {dataset} are {', '.join(tasks)}"
        )
    return task


def _task_hint(dataset: str, name: str) -> str:
    tasks = DATASETS[dataset]
    for task in tasks.values():
        if task.short.casefold() == name.casefold():
            return f": {task.short} is short for {task.name!r}, write that"
    for other, others in DATASETS.items():
        if name in others:
            return f": it is a task of {other}, and studies never mix datasets"
    return _did_you_mean(name, tasks)


def _did_you_mean(name: str, known: dict[str, Task] | dict[str, dict[str, Task]]) -> str:
    # Compared without case, because "friends" or "meld_emotion_recognition" are likely slips.
    by_casefold = {key.casefold(): key for key in known}
    near = get_close_matches(name.casefold(), by_casefold, n=1)
    return f", did you mean {by_casefold[near[0]]!r}?" if near else ""
