"""What the challenge's files hold, shared by the writer and the scorer.

An archive has a folder per task of one dataset, named after the task, with two files each:
``baseline_predictions.csv`` and ``predictions.csv``. No header, two columns, ``instance id`` and
``prediction``, UTF-8. A prediction is

- an integer, the label's place in the card's order (multiple choice: the option's number),
- a string (spans), or
- a list of zeros and ones, one per label (multi-label).

Multi-output tasks have one row per instance and trait, ``<instance id>_<trait>``, with 0 or 1.

Rows and instances
    There is a row for every instance of the test split, in the split's order. The release repeats
    some instance ids (14 in the test split of relation extraction, two speakers in that of
    personality detection), and so do the rows: the k-th row with an id answers the k-th instance
    with that id, in the split's order. The toolkit's example submission has them so too.

No valid answer
    A text-to-text model may write what is no label. Its row holds -1, which is what the paper's
    toolkit writes and what the release's own metric settings list for it; it counts as wrong.
    No label could stand there without giving credit (or a wrong guess) that the model never
    earned. (docs/decisions/0006)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tasktransfer.datasets import DATASETS
from tasktransfer.tasks.card import Task

BASELINE_FILE = "baseline_predictions.csv"
TRANSFER_FILE = "predictions.csv"
FILES = (BASELINE_FILE, TRANSFER_FILE)

NO_ANSWER = -1
"""In integer columns: the model gave no valid label."""

INVALID = ""
"""The label that NO_ANSWER is read back as: none of any card's, so it counts as wrong."""

Value = int | str | tuple[int, ...]
"""A prediction as a row holds it: integer, string or list of zeros and ones."""

ValueKind = Literal["integer", "string", "list"]


@dataclass(frozen=True, slots=True)
class Column:
    """What the second column of a task's files holds.

    ``size``: integers run from 0 to ``size`` - 1 (NO_ANSWER apart), lists have ``size`` entries;
    0 for strings.
    """

    kind: ValueKind
    size: int


def column(task: Task) -> Column:
    """What the predictions of a task are."""
    if task.kind == "span":
        return Column("string", 0)
    return Column("list" if task.kind == "multi_label" else "integer", task.classes)


def folders(dataset: str) -> dict[str, Task]:
    """Folder at the top of the archive → task, in the card's order."""
    return dict(DATASETS[dataset].tasks)


def row_ids(task: Task, instance_id: str) -> tuple[str, ...]:
    """The ids of the rows that answer one instance: one, or one a trait."""
    if task.kind == "multi_output":
        return tuple(f"{instance_id}_{trait}" for trait in task.outputs)
    return (instance_id,)


def to_values(task: Task, prediction: Sequence[str]) -> tuple[Value, ...]:
    """A prediction as ``metrics.evaluate`` takes it → the values of its rows, one per row id."""
    if task.kind == "span":
        return tuple(prediction)
    if task.kind == "multi_label":
        return (tuple(int(label in prediction) for label in task.labels),)
    number_of = {label: number for number, label in enumerate(task.labels)}
    return tuple(number_of.get(answer, NO_ANSWER) for answer in prediction)


def from_values(task: Task, values: Sequence[Value]) -> tuple[str, ...]:
    """The inverse of ``to_values``, for values of the column's kind and range.

    Only an invalid label does not come back as it was: it is ``INVALID`` then, and counts as wrong
    as well.
    """
    answers: list[str] = []
    for value in values:
        if isinstance(value, str):
            answers.append(value)
        elif isinstance(value, int):
            answers.append(INVALID if value == NO_ANSWER else task.labels[value])
        else:
            answers += [label for label, yes in zip(task.labels, value, strict=True) if yes]
    return tuple(answers)
