"""Predictions of a run, prepared for statistics and for checks of records."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tasktransfer import metrics
from tasktransfer.core.fidelity import Scoring, get_scoring
from tasktransfer.core.identity import compute_digest
from tasktransfer.datasets import get_task
from tasktransfer.errors import RecordError, format_quantity
from tasktransfer.files import json_text, replace_file
from tasktransfer.metrics import CodedAnswers
from tasktransfer.metrics.texts import WordCodes, quotes_dialogues
from tasktransfer.results.rows import (
    check_unchanged,
    encode_answers,
    read_columns,
    read_node_digest,
    read_rows,
    select_task_rows,
)
from tasktransfer.results.schema import Record, RowsFile, TaskResult
from tasktransfer.tasks.card import Task

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class TestSet:
    """Digest and gold answers of a test set, and the columns that they come from."""

    __test__ = False  # tells pytest that this is not a test class

    digest: str
    golds: CodedAnswers
    ids: pa.ChunkedArray
    column: pa.ChunkedArray


class TestSets:
    """Cache of test sets. Hundreds of runs share each, and comparing is faster than digesting."""

    __test__ = False

    def __init__(self) -> None:
        self.last: dict[str, TestSet] = {}

    def read_test_set(self, rows: pa.Table, task: Task) -> TestSet:
        """Read the test set of a task from its rows (columns ``rows.COLUMNS``)."""
        ids, golds = rows["instance_id"], rows["gold"]
        test_set = self.last.get(task.name)
        if test_set is None or not (test_set.ids.equals(ids) and test_set.column.equals(golds)):
            test_set = TestSet(_compute_digest(ids, golds, task), encode_answers(golds), ids, golds)
            self.last[task.name] = test_set
        return test_set


def _compute_digest(ids: pa.ChunkedArray, golds: pa.ChunkedArray, task: Task) -> str:
    if quotes_dialogues(task):
        codes = WordCodes(task)
        in_codes = [[codes.encode_text(text) for text in several] for several in golds.to_pylist()]
        golds = pa.chunked_array([pa.array(in_codes, golds.type)])
    lines = [*ids.to_pylist(), "", *pc.binary_join(golds, "\x1f").to_pylist()]
    return hashlib.sha256("\x1e".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def find_deviating_test_sets(tested: Iterable[tuple[Name, Hashable, str]]) -> dict[Name, str]:
    """Return one message per run whose test set differs from the others in its group.

    Args:
        tested: (name of the run, group in which it is compared, digest of its test set).

    Returns:
        The runs that do not use the test set of the group's majority, each with a message. If no
        test set has a majority, the correct one is unknown, and all runs are returned.
    """
    groups: dict[Hashable, list[tuple[Name, str]]] = defaultdict(list)
    for name, group, digest in tested:
        groups[group].append((name, digest))
    wrong: dict[Name, str] = {}
    for members in groups.values():
        counts = Counter(digest for _, digest in members)
        usual, count = counts.most_common(1)[0]
        usual = usual if 2 * count > len(members) else ""
        others = len(members) - 1
        wrong |= {
            name: f"The run was tested on other instances or gold answers ({digest[:12]}) than "
            f"{len(members) - counts[digest]} of {format_quantity(others, 'other run')} on this "
            f"target ({usual[:12] or 'whose sets differ too'}). Delete its record and run "
            "snakemake again."
            for name, digest in members
            if digest != usual
        }
    return wrong


_CHECK_VERSION = 3
"""Version of the checks; increase it when checks or metrics change, to check everything again."""

_AGREE = 1e-6
"""Largest allowed difference between a recorded and a recomputed score, in points."""


def get_recorded_scoring(named: dict[str, Any]) -> Scoring:
    """Return the scoring rules in a node's identity, or ``default`` if there are none."""
    training = named.get("training")
    return get_scoring(training.get("fidelity")) if isinstance(training, dict) else "default"


class PredictionChecks:
    """Cache of predictions that were validated against their records.

    A check depends on the record's results and on the content of the predictions, so its key is a
    digest of both. A valid result stays valid, and only the file's SHA-256 is checked again.
    ``earlier`` and ``done`` map keys of cached and of requested checks to the digest of each tested
    task's test set.
    """

    def __init__(self, earlier: Mapping[str, dict[str, str]] | None = None) -> None:
        self.earlier = dict(earlier or {})
        self.done: dict[str, dict[str, str]] = {}
        self.test_sets = TestSets()

    @staticmethod
    def read(path: Path) -> PredictionChecks:
        """Read a cache from its file, or create an empty one if the file is missing or damaged."""
        try:
            value = json_text.loads(path.read_bytes())
            checked = value["checked"] if value["version"] == _CHECK_VERSION else {}
            return PredictionChecks(
                {str(name): dict(test_sets) for name, test_sets in checked.items()}
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return PredictionChecks()

    def write(self, path: Path) -> None:
        """Write the checks that were requested from this cache, and drop all others."""
        text = json.dumps({"version": _CHECK_VERSION, "checked": self.done}, sort_keys=True)
        with replace_file(path) as part:
            part.write_text(text, encoding="utf-8")


def check_predictions(path: Path, record: Record, checks: PredictionChecks) -> dict[str, str]:
    """Check that the predictions of a record agree with it.

    Args:
        path: path of the record.
        record: the record.
        checks: cache of valid predictions, to which this check is added.

    Returns:
        Tested task → digest of its test set. Empty if the record does not list predictions.

    Raises:
        RecordError: the file is missing, damaged, not the file that the record describes, from
            another stage, lacks instances, or yields other scores than those in the record.
        DataError: the answers do not have the task's form.
        ConfigError: a task has no card.
    """
    expected = record["rows"]
    if expected is None:
        return {}
    file = path.with_name(expected["file"])
    name = _build_check_key(record, expected)
    if name in checks.earlier:
        check_unchanged(file, expected)
        test_sets = checks.earlier[name]
    else:
        test_sets = _check_all_tasks(file, expected, record, checks.test_sets)
    checks.done[name] = test_sets
    return test_sets


def _build_check_key(record: Record, expected: RowsFile) -> str:
    node = record["node"]
    said = [node["digest"], node["dataset"], record["results"], record["sizes"]]
    return compute_digest(
        [*said, get_recorded_scoring(node["identity"]), expected["rows"], expected["sha256"]]
    )


def _check_all_tasks(
    file: Path, expected: RowsFile, record: Record, test_sets: TestSets
) -> dict[str, str]:
    """Check all tasks in the predictions, and return the digest of each task's test set."""
    table = read_rows(file, expected, columns=())
    digest, maker = record["node"]["digest"], read_node_digest(table)
    if maker != digest:
        raise RecordError(
            f"{file}: The rows belong to node {maker[:12] or '?'}, but the record belongs to "
            f"{digest[:12]}. Delete both files and run snakemake again."
        )
    return {
        task: _check_predictions(file, table, record, task, test_sets) for task in record["results"]
    }


def _check_predictions(
    file: Path, table: pa.Table, record: Record, name: str, test_sets: TestSets
) -> str:
    """Check one task's predictions against its result, and return the test set's digest."""
    result = record["results"][name]
    rows = select_task_rows(table, name)
    wanted_by = {f"results.{name}.instances": result["instances"]}
    if name in record["sizes"]:
        wanted_by[f"sizes.{name}.test"] = record["sizes"][name]["test"]
    for key, wanted in wanted_by.items():
        if rows.num_rows != wanted:
            raise RecordError(
                f"{file}: The file has {rows.num_rows} instances of the task {name}, but the "
                f"value of {key} in its record is {wanted}. Delete both files and run snakemake "
                "again."
            )
    task = get_task(record["node"]["dataset"], name)
    fidelity = get_recorded_scoring(record["node"]["identity"])
    test_set = test_sets.read_test_set(rows, task)
    tally = metrics.tally_instances(
        task, encode_answers(rows["prediction"]), test_set.golds, fidelity=fidelity
    )
    values = metrics.compute_metrics_from_sums(task, tally.sum(axis=0), fidelity=fidelity)
    _check_result(file, name, result, {**values, "score": metrics.compute_task_score(task, values)})
    return test_set.digest


def _check_result(
    file: Path, name: str, result: TaskResult, again: Mapping[str, metrics.Sums]
) -> None:
    """Raise RecordError if a recorded result differs from the recomputed one."""
    recorded_measures = {**result["measures"], "score": result["score"]}
    for key, value in again.items():
        recorded = recorded_measures.get(key)
        if recorded is None or not abs(recorded - value) <= _AGREE:
            raise RecordError(
                f"{file}: The {key} of the predictions for the task {name} is {float(value):.6f}, "
                f"but the record contains {recorded}, so one of the two files was changed. Delete "
                "both files and run snakemake again."
            )


class TallyReader:
    """Fast reader of predictions that ``check_predictions`` has validated.

    It reads the gold answers of a test set once, and only the predicted answers of every run. If
    answers quote dialogues, gold answers are read for each run, because some runs store codes.
    """

    def __init__(self, task: Task, fidelity: Scoring, instances: int) -> None:
        self.task = task
        self.fidelity = fidelity
        self.instances = instances
        self.golds: CodedAnswers | None = None

    def read(self, path: Path, expected: RowsFile) -> metrics.Sums:
        """Read each instance's contribution to a run's score, shape (instances, columns).

        Raises:
            RecordError: the file is not the one that was checked.
        """
        if quotes_dialogues(self.task):
            self.golds = None
        columns = ["prediction"] if self.golds is not None else ["prediction", "gold"]
        alone = expected["rows"] == self.instances
        table = read_columns(path, expected, columns if alone else [*columns, "task"])
        rows = table if alone else select_task_rows(table, self.task.name)
        if self.golds is None:
            self.golds = encode_answers(rows["gold"])
        predicted = encode_answers(rows["prediction"])
        return metrics.tally_instances(self.task, predicted, self.golds, fidelity=self.fidelity)
