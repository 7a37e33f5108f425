"""What a submission is held against: the test split's instances and right answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.challenge.format import row_ids
from tasktransfer.errors import DataError
from tasktransfer.metrics import Coded, coded
from tasktransfer.stats.draws import Units, dialogues
from tasktransfer.tasks.card import Instance, Task

SYNTHETIC = (
    "SYNTHETIC: scored on generated dialogues, not on real ones; the numbers say nothing about the "
    "tasks."
)
"""Stands above every score on a release whose metadata says that it is generated."""


@dataclass(frozen=True, slots=True)
class TaskGolds:
    """One task's test split.

    ``answers``: the right answers of its n instances, in the split's order; ``golds``: the same as
    metrics take them. ``row_ids``: the ids that a prediction file has, in the same order,
    as many for each instance. ``places``: row id → the rows that have it, more than one where the
    release repeats an id. ``units``: the dialogues that they are of.
    """

    task: Task
    answers: tuple[tuple[str, ...], ...]
    golds: Coded
    row_ids: list[str]
    places: dict[str, tuple[int, ...]]
    units: Units

    @property
    def rows_per_instance(self) -> int:
        """1, or the number of traits."""
        return len(self.row_ids) // len(self.answers)


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
    tasks = {}
    for name in release.tasks:
        instances = list(release.instances(name, "test"))
        if not instances:
            raise DataError(f"{release.location}: {name} has no instance in the test split")
        tasks[name] = _task_golds(DATASETS[dataset].tasks[name], instances)
    return Golds(dataset, release.revision, release.synthetic, tasks)


def _task_golds(task: Task, instances: list[Instance]) -> TaskGolds:
    ids = [name for instance in instances for name in row_ids(task, instance.id)]
    places: dict[str, tuple[int, ...]] = {}
    for index, name in enumerate(ids):
        places[name] = (*places.get(name, ()), index)
    answers = tuple(instance.target for instance in instances)
    units = dialogues([instance.dialogue_id for instance in instances])
    return TaskGolds(task, answers, coded(answers), ids, places, units)
