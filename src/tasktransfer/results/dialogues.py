"""Which dialogue each instance of a test set is of: from predictions, or from prepared data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from tasktransfer.data.cache import instance_file, read_table
from tasktransfer.data.prepared import instances_folder
from tasktransfer.errors import DataError
from tasktransfer.results.predictions import read_columns, rows_of
from tasktransfer.results.records import PredictionsFile


def names_dialogues(path: Path) -> bool:
    """Whether a file of predictions has the column; False where it cannot be read."""
    try:
        return "dialogue_id" in pq.read_schema(path).names
    except (OSError, ValueError):
        return False


def of_predictions(path: Path, expected: PredictionsFile, task: str) -> list[str] | None:
    """The dialogue of each instance of a task; None: the file does not say it of all.

    Raises:
        RecordError: the file is not the one that the record was written with.
    """
    if not names_dialogues(path):
        return None
    rows = rows_of(read_columns(path, expected, ["task", "dialogue_id"]), task)
    return None if rows["dialogue_id"].null_count else rows["dialogue_id"].to_pylist()


def instance_ids(path: Path, expected: PredictionsFile, task: str) -> list[str]:
    """The ids of a task's instances, in the order of the test split.

    Raises:
        RecordError: the file is not the one that the record was written with.
    """
    rows = rows_of(read_columns(path, expected, ["task", "instance_id"]), task)
    names: list[str] = rows["instance_id"].to_pylist()
    return names


def of_prepared(
    results: Path, dataset: str, revision: str, few_sample: bool, task: str, ids: Sequence[str]
) -> list[str] | None:
    """The dialogue of each of these test instances by the prepared data that they are from.

    None where it is not there or does not say it: it lacks an instance, or has an id in two
    dialogues and other instances than these.
    """
    folder = Path(instances_folder(results, dataset, revision, few_sample=few_sample))
    try:
        rows = read_table(folder / instance_file(task, "test"))
        names, of_names = rows["id"].to_pylist(), rows["dialogue_id"].to_pylist()
    except (DataError, KeyError):
        return None
    if names == list(ids):
        return list(of_names)
    dialogue_of: dict[str, str] = {}
    for name, dialogue in zip(names, of_names, strict=True):
        if dialogue_of.setdefault(name, dialogue) != dialogue:
            dialogue_of[name] = ""
    found = [dialogue_of.get(name, "") for name in ids]
    return found if all(found) else None
