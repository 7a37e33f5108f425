"""Artificial finished stages, never trained, for tests of code that reads results folders."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import yaml

from constructed_records import constructed_record, make_provenance, result
from study_records import TEST_SIZE, tested
from tasktransfer.core.nodes import Stage
from tasktransfer.datasets import get_task
from tasktransfer.designs import open_study
from tasktransfer.results.artefacts import compute_checksums
from tasktransfer.results.rounds import get_selected_round_folder
from tasktransfer.results.rows import Row, write_rows
from tasktransfer.results.schema import Record
from tasktransfer.results.study import Study

TASKS = ["emotion_recognition", "dialogue_nli", "topic_classification"]
MODEL = {"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny", "max_length": 64}
HOST = make_provenance()["host"]


def opened(name: str = "study.yaml", **keys: Any) -> Study:
    """Open a study of two tasks (8 trainings) in the working directory."""
    study = {"study": "s", "datasets": {"DailyDialog": {"tasks": TASKS[:2]}}, "models": [MODEL]}
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
    measured: bool = False,
    **provenance: Any,
) -> Path:
    """Write the files of a finished training, and return its folder.

    ``checkpoint``: whether to write a checkpoint; None to follow the study's config. ``measured``:
    whether results are computed from the answers, so that they can be collected. Otherwise all
    answers and results are the same for every task.
    """
    folder = folder or Path(study.get_node_folder(stage))
    folder.mkdir(parents=True, exist_ok=True)
    record = make(stage, score, **provenance)
    if stage.tested:
        rows = [
            Row(i, task, f"i{i}", (answer,), ("joy",), score)
            for task in stage.tested
            for i in range(4)
        ]
        if measured:
            each = {task: tested(stage, get_task(stage.dataset, task)) for task in stage.tested}
            rows = [row for of_task, _ in each.values() for row in of_task]
            record["results"] = {task: of_task for task, (_, of_task) in each.items()}
            for task in each:
                record["sizes"][task]["test"] = TEST_SIZE
        record["rows"] = write_rows(folder, rows, digest=stage.digest, dataset=stage.dataset)
    (folder / "train.log").write_text("done\n")
    if study.keeps_checkpoints(stage.kind) if checkpoint is None else checkpoint:
        for one in stage.selections:
            write_checkpoint(
                get_selected_round_folder(folder / "checkpoint", stage.list_identifying_tasks(one))
            )
        record["artefacts"] = compute_checksums(folder, ["checkpoint"])
    # write_record is not used, because its fsync takes longer than the rest of a test.
    (folder / "metrics.json").write_text(json.dumps(record, indent=1))
    return folder


def make(stage: Stage, score: float = 50.0, **provenance: Any) -> Record:
    """Build the record of a stage without predictions."""
    test = {task: result(score) for task in stage.tested}
    return constructed_record(stage, (score,), test=test, synthetic=True, **provenance)


def write_checkpoint(folder: Path, shape: tuple[int, ...] = (3, 2)) -> None:
    """Write a checkpoint with one tensor of zeros in the safetensors format."""
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
    """Write every stage of a study as after a complete run."""
    for stage in study.plan.stages:
        finish(study, stage, **keys)
