"""A finished study without a training: records, predictions and logs of every stage of a plan.

Unlike ``record_factory`` these stand at the content-addressed paths of a real plan, and their
scores are those of their predictions. Constructed; they live in temporary folders only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from constructed_records import constructed_record
from tasktransfer import metrics
from tasktransfer.core.nodes import Stage
from tasktransfer.core.runs import Run
from tasktransfer.datasets import get_task
from tasktransfer.results.rows import Row, write_rows
from tasktransfer.results.schema import TaskResult
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Task

TEST_SIZE = 40
Quality = Callable[[Run], float]
"""The probability with which a run answers right."""


def quality(run: Run) -> float:
    """Half of the baseline's answers are right; transfer adds a little."""
    return 0.5 if not run.about["sources"] else 0.6


def write_records(study: Study, quality: Quality = quality) -> None:
    """Every stage of the study's plan, done; for tasks with one label an instance."""
    for stage in study.plan.stages:
        write_stage(study, stage, quality)


def write_stage(study: Study, stage: Stage, quality: Quality = quality) -> Path:
    """One stage, done; gives its record's path. A stage that is not of the plan answers at
    random."""
    folder = Path(study.folder(stage))
    folder.mkdir(parents=True, exist_ok=True)
    ending = (run for run in study.plan.runs if run.stages[-1].digest == stage.digest)
    runs = {run.about["target"]: run for run in ending}
    rows: list[Row] = []
    test, predictions = {}, None
    for task in stage.tested:
        right = quality(runs[task]) if task in runs else None
        of_task, test[task] = tested(stage, get_task(stage.dataset, task), right)
        rows += of_task
    if rows:
        predictions = write_rows(folder, rows, digest=stage.digest, dataset=stage.dataset)
    record = constructed_record(
        stage,
        test=test,
        size=(100, 20, TEST_SIZE),
        synthetic=study.config.data.generated,
        rows=predictions,
        dirty=True,
        config_digest=study.config.digest,
        study=study.config.study,
    )
    (folder / "train.log").write_text("trained\n")
    path = folder / "metrics.json"
    path.write_text(json.dumps(record, indent=1))
    return path


def tested(stage: Stage, task: Task, quality: float | None = None) -> tuple[list[Row], TaskResult]:
    """Answers of a training with a right one as often as ``quality`` says, and their measures."""
    labels = list(task.labels) or ["my lost keys", "a letter from home", "impossible"]
    golds = [(str(one),) for one in _random(task.name).choice(labels, TEST_SIZE)]
    draw = _random(f"{stage.digest} {task.name}")
    right = draw.random(TEST_SIZE) < (quality or 0.0)
    guesses = draw.choice(labels, TEST_SIZE)
    answers = [
        gold if hit else (str(guess),)
        for gold, hit, guess in zip(golds, right, guesses, strict=True)
    ]
    each = metrics.instance_scores(task, answers, golds)
    rows = [
        Row(i, task.name, f"{task.name}-{i}", answers[i], golds[i], each[i], f"d{i // 2}")
        for i in range(TEST_SIZE)
    ]
    values = metrics.evaluate(task, answers, golds)
    return rows, {"measures": values, "score": metrics.score(task, values), "instances": TEST_SIZE}


def _random(text: str) -> np.random.Generator:
    return np.random.default_rng(int(hashlib.sha256(text.encode()).hexdigest()[:8], 16))
