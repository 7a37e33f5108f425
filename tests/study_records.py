"""A finished study without trainings: records, predictions and logs of every stage of a plan.

Unlike those of ``record_factory``, they are at the content-addressed paths of a real plan, with
scores computed from their predictions. They are artificial; write them only to temporary folders.
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
"""Run → probability of a correct answer."""


def quality(run: Run) -> float:
    """Return 0.5 for baselines, and a little more for transfers."""
    return 0.5 if not run.about["sources"] else 0.6


def write_records(study: Study, quality: Quality = quality) -> None:
    """Write every stage of the study's plan; for tasks with one label per instance."""
    for stage in study.plan.stages:
        write_stage(study, stage, quality)


def write_stage(study: Study, stage: Stage, quality: Quality = quality) -> Path:
    """Write one finished stage, and return its record's path.

    A stage that is not in the plan answers at random.
    """
    folder = Path(study.get_node_folder(stage))
    folder.mkdir(parents=True, exist_ok=True)
    trained = (run for run in study.plan.runs if run.stages)
    ending = (run for run in trained if run.stages[-1].digest == stage.digest)
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
    """Simulate a training's answers with accuracy ``quality``, and their measures."""
    labels = list(task.labels) or ["my lost keys", "a letter from home", "impossible"]
    golds = [(str(one),) for one in _random(task.name).choice(labels, TEST_SIZE)]
    draw = _random(f"{stage.digest} {task.name}")
    right = draw.random(TEST_SIZE) < (quality or 0.0)
    guesses = draw.choice(labels, TEST_SIZE)
    answers = [
        gold if hit else (str(guess),)
        for gold, hit, guess in zip(golds, right, guesses, strict=True)
    ]
    each = metrics.score_instances(task, answers, golds)
    rows = [
        Row(i, task.name, f"{task.name}-{i}", answers[i], golds[i], each[i], f"d{i // 2}")
        for i in range(TEST_SIZE)
    ]
    values = metrics.evaluate_predictions(task, answers, golds)
    return rows, {
        "measures": values,
        "score": metrics.compute_task_score(task, values),
        "instances": TEST_SIZE,
    }


def _random(text: str) -> np.random.Generator:
    return np.random.default_rng(int(hashlib.sha256(text.encode()).hexdigest()[:8], 16))
