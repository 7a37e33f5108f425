"""Dialogues of a split: their numbers for few-sample sampling, and their instances."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class SplitDialogues:
    """Dialogues of a split.

    Args:
        tasks: names of the tasks.
        few: numbers of the dialogues for few-sample sampling.
        counts: task → number of instances per dialogue.
    """

    tasks: tuple[str, ...]
    few: array[int] = field(default_factory=lambda: array("q"))
    counts: dict[str, array[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = {task: array("l") for task in self.tasks}

    def add(self, few_number: int, counts: list[int]) -> None:
        """Add a dialogue with its number and its numbers of instances by task."""
        self.few.append(few_number)
        for task, count in zip(self.tasks, counts, strict=True):
            self.counts[task].append(count)

    def count_instances_below(self, task: str, limit: int) -> int:
        """Count a task's instances on dialogues whose numbers are below a limit."""
        both = zip(self.few, self.counts[task], strict=True)
        return sum(count for number, count in both if number < limit)


def count_few_dialogues(
    dialogues: SplitDialogues, split: str, draws: Mapping[str, Mapping[str, int]]
) -> int:
    """Count the dialogues in the few-sample subset of at least one task."""
    limits = [limit[split] for limit in draws.values() if split in limit]
    return sum(number < max(limits) for number in dialogues.few) if limits else len(dialogues.few)
