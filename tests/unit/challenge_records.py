"""Constructed finished runs of a study: records and predictions at the plan's paths.

Nothing is trained. Each test sets dev scores, test scores and answers.
"""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from constructed_records import constructed_record, result
from tasktransfer import metrics
from tasktransfer.core.nodes import merge_selections
from tasktransfer.core.runs import Run
from tasktransfer.datasets import get_task
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.results.records import write_record
from tasktransfer.results.rows import Row, write_rows
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Task

FRIENDS: dict[str, Any] = {
    "study": "constructed",
    "rules": "challenge",
    "datasets": {
        "Friends": {"tasks": "all", "sources": ["question_answering", "relation_extraction"]}
    },
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
    "algorithms": ["pretrain_finetune", "multitask"],
    "seeds": 2,
}

Score = Callable[[Run], float]
Answers = Callable[[Run, Task], list[tuple[str, ...]]]

IDS = ("d1_i0", "d1_i1", "d1_i1", "d2_i0")
"""One of them twice, as in the release."""


def make_study(folder: Path, **changes: Any) -> Study:
    """Return a study of all Friends tasks (or as ``changes`` sets it), with nothing finished."""
    keys = copy.deepcopy(FRIENDS) | {"results": str(folder / "results")} | changes
    path = folder / "study.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(keys))
    return open_study(path, need_inputs=False)


def right_answers(task: Task) -> list[tuple[str, ...]]:
    """Return the gold answers of the four instances."""
    if task.kind == "span":
        return [("the sofa",), ("Ross",), ("a, b", "b"), ('he said "no"',)]
    if task.kind == "multi_label":
        return [task.labels[:1], task.labels[1:3], task.labels[:1], task.labels[5:6]]
    labels = task.labels
    width = len(task.outputs) if task.kind == "multi_output" else 1
    return [tuple(labels[(i + j) % len(labels)] for j in range(width)) for i in range(4)]


def by_seed(run: Run, task: Task) -> list[tuple[str, ...]]:
    """Return answers that differ between runs: gold answers rotated by seed and sources."""
    golds = right_answers(task)
    golds = [gold[:1] if task.kind == "span" else gold for gold in golds]
    by = (
        run.seed + 2 * len(run.about["sources"]) + ("relation_extraction" in run.about["sources"])
    ) % len(golds)
    return golds[by:] + golds[:by]


def finish_all(
    study: Study,
    dev: Score,
    test: Score = lambda run: 50.0,
    answers: Answers = by_seed,
    wanted: Callable[[Run], bool] = lambda run: True,
) -> None:
    """Finish every planned run that is selected."""
    by_stage: dict[str, list[Run]] = defaultdict(list)
    for run in select_transfer_runs(study.plan):
        if wanted(run):
            by_stage[run.stages[-1].digest].append(run)
    for runs in by_stage.values():
        _finish_stage(study, {run.about["target"]: run for run in runs}, dev, test, answers)


def _finish_stage(
    study: Study, runs: dict[str, Run], dev: Score, test: Score, answers: Answers
) -> None:
    """Write record and predictions of a stage with which runs to several targets end."""
    ends = [run.stages[-1] for run in runs.values()]
    stage, folder = merge_selections(ends[-1], ends), Path(study.get_node_folder(ends[-1]))
    rows, dataset = list[Row](), ends[-1].dataset
    for target in sorted(runs):
        task = get_task(dataset, target)
        given, golds = answers(runs[target], task), right_answers(task)
        each = metrics.score_instances(task, given, golds)
        told = zip(IDS, given, golds, each, strict=True)
        rows += [Row(i, target, *values) for i, values in enumerate(told)]
    record = constructed_record(
        stage,
        (dev(runs[next(iter(runs))]),),
        test={target: result(test(runs[target]), len(IDS)) for target in sorted(runs)},
        size=(20, 7, len(IDS)),
        synthetic=True,
        rows=write_rows(folder, rows, digest=stage.digest, dataset=dataset),
        rules=study.config.rules,
    )
    for one in record["training"]["selections"]:
        one["dev_score"] = dev(runs["+".join(one["select_on"])])
        one["scores"] = [one["dev_score"]]
    write_record(folder / "metrics.json", record)


def refresh_digest(predictions: Path) -> None:
    """Update the digest in the record of changed predictions."""
    path = predictions.parent / "metrics.json"
    record = json.loads(path.read_text())
    record["rows"]["sha256"] = sha256(predictions.read_bytes()).hexdigest()
    path.write_text(json.dumps(record))


def with_column(path: Path, name: str, values: pa.Array) -> None:
    """Replace a column of the predictions, and update the record.

    The values are those of all tasks; fewer values are repeated, for each task.
    """
    table = pq.read_table(path)
    at = table.schema.get_field_index(name)
    every = pa.concat_arrays([values] * (len(table) // len(values)))
    pq.write_table(table.set_column(at, table.schema.field(at), every), path)
    refresh_digest(path)
