"""Names of algorithms and tasks in tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tasktransfer.datasets import ALL_TASKS
from tasktransfer.results.store import Metadata

_ALGORITHMS = {
    "baseline": "Baseline",
    "pretrain_finetune": "Pre-train → fine-tune",
    "multitask": "Multitask",
    "multitask_finetune": "Multitask → fine-tune",
}
_WORDS = {"nli": "NLI", "emory": "Emory"}
"""Words of task names that are spelled with capitals."""


def get_algorithm_label(algorithm: str) -> str:
    """Return the readable name of an algorithm, or the name itself if it has none."""
    return _ALGORITHMS.get(algorithm, algorithm)


def get_short_names(metadata: Metadata) -> dict[str, str]:
    """Map each task to its short name, from the study or from the task's card."""
    return {task.name: task.short for task in ALL_TASKS} | dict(metadata.shorts)


def format_task_name(task: str) -> str:
    """Return a task's name as words: ``dialogue_nli`` → ``dialogue NLI``."""
    return " ".join(_WORDS.get(word, word) for word in task.split("_"))


def fit_short_names(tasks: Iterable[str], shorts: Mapping[str, str]) -> dict[str, str]:
    """Map each task to a name that is short enough for an axis.

    It is the short name in ``shorts``, or otherwise the initials of its words. Tasks that would
    share such a name keep their whole names.
    """
    listed = list(tasks)
    names = {task: shorts.get(task) or _abbreviate(task) for task in listed}
    used = list(names.values())
    return {task: name if used.count(name) == 1 else task for task, name in names.items()}


def explain_short_names(names: Mapping[str, str]) -> list[str]:
    """Return a list with one note that explains a figure's abbreviations.

    The list is empty if the figure has no abbreviations.

    Args:
        names: names in the figure, by task.
    """
    known = sorted((name, task) for task, name in names.items() if name != task)
    if not known:
        return []
    return ["; ".join(f"{name}: {format_task_name(task)}" for name, task in known) + "."]


def _abbreviate(task: str) -> str:
    """Return the initials of a task's words, or the task's name if it is a single word."""
    words = [word for word in task.split("_") if word]
    return "".join(word[0].upper() for word in words) if len(words) > 1 else task
