"""The predictions of a run, as the statistics and the checks of the records need them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from tasktransfer import metrics
from tasktransfer.core.digests import digest_of
from tasktransfer.core.fidelity import Scoring, scoring_of
from tasktransfer.datasets import get_task
from tasktransfer.errors import RecordError
from tasktransfer.files import json_text, replacing
from tasktransfer.metrics import Coded
from tasktransfer.metrics.word_codes import quotes_dialogues
from tasktransfer.results.rows import (
    answers,
    check_unchanged,
    made_by,
    read_columns,
    read_rows,
    rows_of,
)
from tasktransfer.results.schema import Record, RowsFile, TaskResult
from tasktransfer.results.test_sets import TestSets
from tasktransfer.tasks.card import Task

_CHECK_VERSION = 3
"""Raise this when checks or metrics change: everything is checked again then."""

_AGREE = 1e-6
"""How far a recorded score may be from the one recomputed, in points."""


def fidelity_of(named: dict[str, Any]) -> Scoring:
    """How a stage's identity says that it was scored; records that do not say it: ``default``."""
    training = named.get("training")
    return scoring_of(training.get("fidelity")) if isinstance(training, dict) else "default"


class Checks:
    """Which predictions were held against their records, so that it is done once.

    A check depends on what the record says of its results and on the predictions' content: it is
    named by a digest of both, and what was found right once is right for good. Only that the file
    is still the same is looked at again. ``earlier`` and ``done``: names of earlier checks, and of
    those that were asked for since, with the digest of each tested task's test set.
    """

    def __init__(self, earlier: Mapping[str, dict[str, str]] | None = None) -> None:
        self.earlier = dict(earlier or {})
        self.done: dict[str, dict[str, str]] = {}
        self.test_sets = TestSets()

    @staticmethod
    def read(path: Path) -> Checks:
        """From a file that ``write`` wrote; without it, or where it is damaged: nothing known."""
        try:
            value = json_text.loads(path.read_bytes())
            checked = value["checked"] if value["version"] == _CHECK_VERSION else {}
            return Checks({str(name): dict(test_sets) for name, test_sets in checked.items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return Checks()

    def write(self, path: Path) -> None:
        """Keep the checks of this call; others are forgotten."""
        text = json.dumps({"version": _CHECK_VERSION, "checked": self.done}, sort_keys=True)
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")


def check_predictions(path: Path, record: Record, checks: Checks) -> dict[str, str]:
    """Hold the predictions beside a record against it.

    Args:
        path: the record's file.
        record: the record.
        checks: what is known to be right already; this check is added.

    Returns:
        Tested task → digest of its test set; empty where the record names no predictions.

    Raises:
        RecordError: the file is absent, damaged, not the one that the record was written with, of
            another stage, lacks instances, or gives other scores than the record has.
        DataError: its answers are not of the task's shape.
        ConfigError: there is no card for a task.
    """
    expected = record["rows"]
    if expected is None:
        return {}
    file = path.with_name(expected["file"])
    name = _name_of_check(record, expected)
    if name in checks.earlier:
        check_unchanged(file, expected)
        test_sets = checks.earlier[name]
    else:
        test_sets = _check_all(file, expected, record, checks.test_sets)
    checks.done[name] = test_sets
    return test_sets


def _name_of_check(record: Record, expected: RowsFile) -> str:
    node = record["node"]
    said = [node["digest"], node["dataset"], record["results"], record["sizes"]]
    return digest_of([*said, fidelity_of(node["identity"]), expected["rows"], expected["sha256"]])


def _check_all(
    file: Path, expected: RowsFile, record: Record, test_sets: TestSets
) -> dict[str, str]:
    """Every task of the predictions; gives the digest of each one's test set."""
    table = read_rows(file, expected, columns=())
    digest, maker = record["node"]["digest"], made_by(table)
    if maker != digest:
        raise RecordError(
            f"{file}: holds the rows of the node {maker[:12] or '?'}, its record is "
            f"that of {digest[:12]}; delete both and start snakemake again"
        )
    return {task: _checked(file, table, record, task, test_sets) for task in record["results"]}


def _checked(file: Path, table: pa.Table, record: Record, name: str, test_sets: TestSets) -> str:
    """One task's predictions against its result; gives the digest of its test set."""
    result = record["results"][name]
    rows = rows_of(table, name)
    wanted_by = {f"results.{name}.instances": result["instances"]}
    if name in record["sizes"]:
        wanted_by[f"sizes.{name}.test"] = record["sizes"][name]["test"]
    for key, wanted in wanted_by.items():
        if rows.num_rows != wanted:
            raise RecordError(
                f"{file}: {rows.num_rows} instances of {name}, its record's {key} is {wanted}"
            )
    task = get_task(record["node"]["dataset"], name)
    fidelity = fidelity_of(record["node"]["identity"])
    test_set = test_sets.of(rows, task)
    tally = metrics.tally(task, answers(rows["prediction"]), test_set.golds, fidelity=fidelity)
    values = metrics.finish(task, tally.sum(axis=0), fidelity=fidelity)
    _agree(file, name, result, {**values, "score": metrics.score(task, values)})
    return test_set.digest


def _agree(file: Path, name: str, result: TaskResult, again: Mapping[str, metrics.Sums]) -> None:
    """Hold a recorded result against the one computed again."""
    recorded_measures = {**result["measures"], "score": result["score"]}
    for key, value in again.items():
        recorded = recorded_measures.get(key)
        if recorded is None or not abs(recorded - value) <= _AGREE:
            raise RecordError(
                f"{file}: its predictions have {key} {float(value):.6f} on {name}, the record "
                f"says {recorded}; one of the two was changed: delete both and start "
                "snakemake again"
            )


class Tallies:
    """Reads predictions that ``check_predictions`` has found right, as fast as can be: the right
    answers of a test set once, and of every run the predicted answers alone. Where answers quote
    dialogues, a run's may be in codes and the next one's not: there right answers are each run's.
    """

    def __init__(self, task: Task, fidelity: Scoring, instances: int) -> None:
        self.task = task
        self.fidelity = fidelity
        self.instances = instances
        self.golds: Coded | None = None

    def read(self, path: Path, expected: RowsFile) -> metrics.Sums:
        """``metrics.tally`` of a run's predictions, (instances, columns).

        Raises:
            RecordError: the file is not the one that was checked.
        """
        if quotes_dialogues(self.task):
            self.golds = None
        columns = ["prediction"] if self.golds is not None else ["prediction", "gold"]
        alone = expected["rows"] == self.instances
        table = read_columns(path, expected, columns if alone else [*columns, "task"])
        rows = table if alone else rows_of(table, self.task.name)
        if self.golds is None:
            self.golds = answers(rows["gold"])
        predicted = answers(rows["prediction"])
        return metrics.tally(self.task, predicted, self.golds, fidelity=self.fidelity)
