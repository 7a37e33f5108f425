"""What a submission is held against: the test split's instances and right answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.challenge.format import row_ids
from tasktransfer.errors import DataError
from tasktransfer.metrics import Coded, coded
from tasktransfer.tasks.card import Instance, Task

SYNTHETIC = (
    "SYNTHETIC: scored on generated dialogues, not on real ones; the numbers say nothing about the "
    "tasks."
)
"""Stands above every score on a release whose metadata says that it is generated."""


@dataclass(frozen=True, slots=True)
class TaskGolds:
    """One task's test split.

    ``golds``: the right answers of its n instances, in the split's order. ``row_ids``: the ids
    that a prediction file has, in the same order, ``rows_per_instance`` for each instance.
    ``places``: row id → the rows that have it, more than one where the release repeats an id.
    """

    task: Task
    golds: Coded
    answers: tuple[tuple[str, ...], ...]
    row_ids: list[str]
    rows_per_instance: int
    places: dict[str, tuple[int, ...]]

    @property
    def instances(self) -> int:
        """Number of instances of the test split."""
        return len(self.answers)


@dataclass(frozen=True, slots=True)
class Golds:
    """All tasks of a dataset, in the card's order, and which release they are from."""

    dataset: str
    revision: str
    synthetic: bool
    tasks: dict[str, TaskGolds]


def read_golds(data: Path | str, dataset: str) -> Golds:
    """Read the test split of ``dataset`` from the release under ``data``.

    Args:
        data: a folder with ``TLiDB_<dataset>/`` or its zip, or either itself.
        dataset: DailyDialog or Friends.

    Raises:
        DataError: the release is absent or damaged, or a task has no test instance.
    """
    release = DATASETS[dataset].reader.open(Path(data), True)
    tasks = {
        name: task_golds(DATASETS[dataset].tasks[name], list(release.instances(name, "test")))
        for name in release.tasks
    }
    for name, golds in tasks.items():
        if not golds.instances:
            raise DataError(f"{release.place}: {name} has no instance in the test split")
    return Golds(dataset, release.revision, release.synthetic, tasks)


def task_golds(task: Task, instances: list[Instance]) -> TaskGolds:
    """The test split of one task from its instances."""
    names = [name for instance in instances for name in row_ids(task, instance.id)]
    places: dict[str, tuple[int, ...]] = {}
    for place, name in enumerate(names):
        places[name] = (*places.get(name, ()), place)
    answers = tuple(instance.target for instance in instances)
    return TaskGolds(
        task=task,
        golds=coded(answers),
        answers=answers,
        row_ids=names,
        rows_per_instance=len(task.outputs) if task.kind == "multi_output" else 1,
        places=places,
    )
