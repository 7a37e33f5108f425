"""How tables and figures spell algorithms, tasks and studies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tasktransfer.designs.transfer.collect.store import Metadata

_ALGORITHMS = {
    "baseline": "Baseline",
    "pretrain_finetune": "Pre-train → fine-tune",
    "multitask": "Multitask",
    "multitask_finetune": "Multitask → fine-tune",
}


def algorithm_label(algorithm: str) -> str:
    """The readable name of an algorithm; one that is not known here stands for itself."""
    return _ALGORITHMS.get(algorithm, algorithm)


def in_order(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """Distinct names, those that ``order`` has first and in its order, the others as they come."""
    listed = list(dict.fromkeys(names))
    return [name for name in order if name in listed] + [n for n in listed if n not in order]


def synthetic_mark(metadata: Metadata) -> str:
    """What captions of studies on generated dialogues start with; empty for real data."""
    return mark_of(metadata.real) if metadata.synthetic else ""


def mark_of(real: Sequence[str]) -> str:
    """The mark of generated dialogues; ``real``: the datasets beside them that are real."""
    but = f", but {' and '.join(real)} {'is' if len(real) == 1 else 'are'} real" if real else ""
    return f"SYNTHETIC (tiny world){but}. "


def short_names(tasks: Iterable[str], shorts: Mapping[str, str]) -> dict[str, str]:
    """Task → the name that fits on an axis: the plan's short name, else the words' initials, else
    (where two tasks would share it) the whole name."""
    listed = list(tasks)
    names = {task: shorts.get(task) or _initials(task) for task in listed}
    taken = list(names.values())
    return {task: name if taken.count(name) == 1 else task for task, name in names.items()}


def _initials(task: str) -> str:
    words = [word for word in task.split("_") if word]
    return "".join(word[0].upper() for word in words) if len(words) > 1 else task
