"""A finished study without a training: records, predictions and logs of every stage of a plan.

Unlike ``record_factory`` these stand at the content-addressed paths of a real plan, and their
scores are those of their predictions. Constructed; they live in temporary folders only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tasktransfer import metrics
from tasktransfer.core.nodes import RECIPE_VERSION, Stage
from tasktransfer.datasets import get_task
from tasktransfer.designs.transfer.plan import run_of
from tasktransfer.designs.transfer.runs import TransferRun as Run
from tasktransfer.results.predictions import FILE_NAME, Prediction, write_predictions
from tasktransfer.results.study import Study

TEST_SIZE = 40
Quality = Callable[[Run], float]
"""The probability with which a run answers right."""


def quality(run: Run) -> float:
    """Half of the baseline's answers are right; transfer adds a little."""
    return 0.5 if not run.sources else 0.6


def write_records(study: Study, quality: Quality = quality) -> None:
    """Every stage of the study's plan, done; for tasks with one label an instance."""
    for stage in study.plan.stages:
        write_stage(study, stage, quality)


def write_stage(study: Study, stage: Stage, quality: Quality = quality) -> Path:
    """One stage, done; gives its record's path."""
    folder = Path(study.folder(stage))
    folder.mkdir(parents=True, exist_ok=True)
    run = run_of(stage)
    record = _record(study, stage, run)
    if run is not None:
        _add_result(record, folder, stage, run, quality(run))
    (folder / "train.log").write_text("trained\n")
    path = folder / "metrics.json"
    path.write_text(json.dumps(record, indent=1))
    return path


def _add_result(
    record: dict[str, Any], folder: Path, stage: Stage, run: Run, quality: float
) -> None:
    task = get_task(run.dataset, run.target)
    labels = list(task.labels)
    golds = [(str(one),) for one in _random(run.target).choice(labels, TEST_SIZE)]
    draw = _random(stage.digest)
    right = draw.random(TEST_SIZE) < quality
    guesses = draw.choice(labels, TEST_SIZE)
    answers = [
        gold if hit else (str(guess),)
        for gold, hit, guess in zip(golds, right, guesses, strict=True)
    ]
    each = metrics.instance_scores(task, answers, golds)
    rows = [
        Prediction(i, run.target, f"{run.target}-{i}", answers[i], golds[i], each[i])
        for i in range(TEST_SIZE)
    ]
    values = metrics.evaluate(task, answers, golds)
    record["score"] = metrics.score(task, values)
    result = {"metrics": values, "score": record["score"], "instances": TEST_SIZE}
    record["test"] = {run.target: result}
    record["predictions"] = write_predictions(
        folder / FILE_NAME, rows, digest=stage.digest, dataset=run.dataset, target=run.target
    )


def _random(text: str) -> np.random.Generator:
    return np.random.default_rng(int(hashlib.sha256(text.encode()).hexdigest()[:8], 16))


def _record(study: Study, stage: Stage, run: Run | None) -> dict[str, Any]:
    tasks = sorted({*stage.train_tasks, *stage.select_on})
    dev = {task: {"accuracy": 50.0} for task in stage.select_on}
    epoch = {"epoch": 1, "train_loss": dict.fromkeys(stage.train_tasks, 1.0), "dev": dev}
    return {
        "schema": 1,
        "stage": {
            "digest": stage.digest,
            "kind": stage.kind,
            "label": stage.label,
            "dataset": stage.dataset,
            "model": stage.model.name,
            "family": stage.model.family,
            "train_tasks": list(stage.train_tasks),
            "select_on": list(stage.select_on),
            "seed": stage.seed,
            "parent": stage.parent.digest if stage.parent else None,
            "identity": stage.identity,
        },
        "run": run.identity if run else None,
        "synthetic": study.config.data.generated,
        "few_sample": stage.few_sample,
        "data_revision": stage.data_revision,
        "sizes": {task: {"train": 100, "dev": 20, "test": TEST_SIZE} for task in tasks},
        "epochs": [epoch | {"selection_score": 50.0, "seconds": 0.5}],
        "best_epoch": 1,
        "test": {},
        "score": None,
        "dev_score": 50.0,
        "predictions": None,
        "provenance": _provenance(study),
    }


def _provenance(study: Study) -> dict[str, Any]:
    return {
        "tasktransfer": "0.1.0",
        "recipe": RECIPE_VERSION,
        "versions": {"python": "3.11.2", "torch": "2.13.0"},
        "commit": "0123456789" * 4,
        "dirty": True,
        "config_digest": study.config.digest,
        "study": study.config.study,
        "host": {
            "platform": "Linux",
            "cpu": "constructed",
            "cores": 2,
            "gpu": None,
            "device": "cpu",
            "precision": "float32",
            "threads": 1,
        },
        "started": "2024-01-02T03:04:05Z",
        "seconds": {"train": 1.5, "test": 0.5},
        "tokens": 1000,
        "samples": 200,
        "samples_per_second": 133.3,
        "tokens_per_second": 666.7,
        "peak_memory_mb": 300.0,
        "peak_gpu_memory_mb": None,
        "notes": [],
    }
