"""Comparison of records with the prepared data that they were computed from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tasktransfer.data.prepared import has_generated_dialogues, name_instances_folder
from tasktransfer.results.schema import Record

Says = Callable[[Path], bool | None]


def as_prepared(record: Record, results: Path, says: Says = has_generated_dialogues) -> Record:
    """Return a record with ``synthetic`` taken from its prepared data, if that exists.

    Older trainings recorded a generated world as real if it was given as a folder. ``says`` may be
    a cached ``has_generated_dialogues``.
    """
    dataset, revision = record["node"]["dataset"], record["data_revision"]
    folder = name_instances_folder(results, dataset, revision, few_sample=record["few_sample"])
    synthetic = says(Path(folder))
    if synthetic is None or synthetic == record["synthetic"]:
        return record
    return {**record, "synthetic": synthetic}
