"""Stages that look finished, for tests of what reads results folders. Made up, never trained."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import yaml
from record_factory import make_provenance

from tasktransfer.core.nodes import Stage
from tasktransfer.designs.transfer.plan import run_of
from tasktransfer.results.predictions import Prediction, write_predictions
from tasktransfer.results.records import Record
from tasktransfer.results.study import Study, open_study

TASKS = ["emotion_recognition", "dialogue_nli", "topic_classification"]
MODEL = {"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny", "max_length": 64}
HOST = make_provenance()["host"]


def opened(name: str = "study.yaml", **keys: Any) -> Study:
    """A study of two tasks (8 trainings) in the working directory."""
    study = {
        "study": "s",
        "datasets": {"DailyDialog": {"tasks": TASKS[:2]}},
        "models": [MODEL],
    }
    path = Path(name)
    path.write_text(yaml.safe_dump(study | keys))
    return open_study(path)


def finish(
    study: Study,
    stage: Stage,
    *,
    score: float = 50.0,
    checkpoint: bool | None = None,
    folder: Path | None = None,
    answer: str = "joy",
    **provenance: Any,
) -> Path:
    """Leave what a training of this stage would; gives its folder. ``checkpoint``: None as the
    study keeps it."""
    folder = folder or Path(study.folder(stage))
    folder.mkdir(parents=True, exist_ok=True)
    record = make(stage, score, **provenance)
    if record["run"] is not None:
        rows = [
            Prediction(i, stage.select_on[0], f"i{i}", (answer,), ("joy",), score) for i in range(4)
        ]
        record["predictions"] = write_predictions(
            folder / "predictions.parquet",
            rows,
            digest=stage.digest,
            dataset=stage.dataset,
            target=stage.select_on[0],
        )
    (folder / "train.log").write_text("done\n")
    if study.keeps(stage.kind) if checkpoint is None else checkpoint:
        write_checkpoint(folder / "checkpoint")
    # Without write_record, whose fsync takes longer than the rest of a test.
    (folder / "metrics.json").write_text(json.dumps(record, indent=1))
    return folder


def make(stage: Stage, score: float = 50.0, **provenance: Any) -> Record:
    """The record of a stage, predictions left out."""
    run = run_of(stage)
    tasks = {*stage.train_tasks, *stage.select_on}
    epoch = {
        "epoch": 1,
        "train_loss": dict.fromkeys(stage.train_tasks, 1.0),
        "dev": {task: {"accuracy": score} for task in stage.select_on},
        "selection_score": score,
        "seconds": 0.5,
    }
    result = {"metrics": {"accuracy": score}, "score": score, "instances": 4}
    record: dict[str, Any] = {
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
        "synthetic": True,
        "few_sample": stage.few_sample,
        "data_revision": stage.data_revision,
        "sizes": {task: {"train": 100, "dev": 10, "test": 4} for task in sorted(tasks)},
        "epochs": [epoch],
        "best_epoch": 1,
        "test": {run.target: result} if run else {},
        "score": score if run else None,
        "dev_score": score,
        "predictions": None,
        "provenance": make_provenance(**provenance),
    }
    return record  # type: ignore[return-value]


def write_checkpoint(folder: Path, shape: tuple[int, ...] = (3, 2)) -> None:
    """A checkpoint with one tensor of zeros, in safetensors' format."""
    folder.mkdir(parents=True, exist_ok=True)
    size = 4
    for length in shape:
        size *= length
    entry = {"dtype": "F32", "shape": list(shape), "data_offsets": [0, size]}
    header = json.dumps({"weight": entry, "__metadata__": {"format": "pt"}}).encode()
    content = struct.pack("<Q", len(header)) + header + bytes(size)
    (folder / "model.safetensors").write_bytes(content)
    (folder / "config.json").write_text(json.dumps({"hidden_size": 2, "num_hidden_layers": 1}))


def finish_all(study: Study, **keys: Any) -> None:
    """Every stage of a study, as a run to the end leaves them."""
    for stage in study.plan.stages:
        finish(study, stage, **keys)
