"""References of a submission: the test split's instances and gold answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tasktransfer.datasets import DATASETS
from tasktransfer.designs.challenge.format import list_row_ids
from tasktransfer.errors import DataError
from tasktransfer.metrics import CodedAnswers, encode_answers
from tasktransfer.stats.draws import Units, build_dialogue_units
from tasktransfer.tasks.card import Instance, Task

SYNTHETIC = (
    "SYNTHETIC: The scores come from generated dialogues. They say nothing about the real tasks."
)
"""Warning above every score on a release whose metadata marks it as generated."""


@dataclass(frozen=True, slots=True)
class TaskGolds:
    """One task's test split of n instances.

    Attributes:
        answers: gold answers of the instances, in the split's order.
        golds: ``answers`` in the form that metrics take.
        row_ids: ids of a prediction file in this order, with an equal number for each instance.
        places: row id → indices in ``row_ids``; several if the release repeats an id.
        units: the instances' dialogues.
    """

    task: Task
    answers: tuple[tuple[str, ...], ...]
    golds: CodedAnswers
    row_ids: list[str]
    places: dict[str, tuple[int, ...]]
    units: Units

    @property
    def rows_per_instance(self) -> int:
        """Number of rows per instance: 1, or the number of traits."""
        return len(self.row_ids) // len(self.answers)


@dataclass(frozen=True, slots=True)
class Golds:
    """All tasks of a dataset, in the cards' order, and their release."""

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
            raise DataError(
                f"{release.location}: The test split has no instance of {name}. Use the complete "
                "release."
            )
        tasks[name] = _build_task_golds(DATASETS[dataset].tasks[name], instances)
    return Golds(dataset, release.revision, release.synthetic, tasks)


def _build_task_golds(task: Task, instances: list[Instance]) -> TaskGolds:
    ids = [name for instance in instances for name in list_row_ids(task, instance.id)]
    places: dict[str, tuple[int, ...]] = {}
    for index, name in enumerate(ids):
        places[name] = (*places.get(name, ()), index)
    answers = tuple(instance.target for instance in instances)
    units = build_dialogue_units([instance.dialogue_id for instance in instances])
    return TaskGolds(task, answers, encode_answers(answers), ids, places, units)
