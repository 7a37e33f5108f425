"""A study of adapters in a workflow: arguments, results and reports of its jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from calls import call, snakemake

from architectures import TEXTS, write_checkpoint
from tasktransfer.designs import open_study

pytestmark = pytest.mark.slow

STUDY: dict[str, Any] = {
    "study": "adapters",
    "data": {"tiny_world": {"dialogues": 120}},
    "datasets": {
        "DailyDialog": {
            "tasks": ["emotion_recognition", "dialogue_nli"],
            "pairs": [{"source": "dialogue_nli", "target": "emotion_recognition"}],
        }
    },
    "models": [
        {
            "name": "small-lora",
            "family": "encoder",
            "checkpoint": "./model",
            "max_length": 64,
            "max_unknown_words": 1.0,
            "adapter": {"rank": 2, "alpha": 4, "start": "merge"},
        }
    ],
    "algorithms": ["baseline", "pretrain_finetune"],
    "checkpoints": {"keep": ["baseline", "finetune"]},
    "training": {
        "epochs": 1,
        "batch_size": 16,
        "limit_train": 32,
        "limit_dev": 16,
        "limit_test": 16,
    },
}


def test_trainings_start_from_adapters_and_leave_adapters(tmp_path: Path, monkeypatch: Any) -> None:
    write_checkpoint("bert", tmp_path / "model", TEXTS)
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(STUDY))
    monkeypatch.chdir(tmp_path)
    study = open_study("study.yaml")
    fine = next(stage for stage in study.plan.stages if stage.kind == "finetune")
    snakemake(tmp_path, study.get_record_path(fine))
    assert fine.training.learning_rate == 3e-4
    folder = Path(study.get_node_folder(fine), "checkpoint")
    left = {str(file.relative_to(folder)) for file in folder.rglob("[a-z]*.*")}
    files = {"adapter_config.json", "adapter_model.safetensors"}
    assert left == {*files, *(f"earlier/0/{file}" for file in files), "heads.safetensors"}
    told = call(tmp_path, "tasktransfer", "explain", fine.digest[:12], "--config", "study.yaml")
    assert "rank 2, alpha 4" in told and "start merge" in told and "are trained" in told
    record = json.loads(Path(study.get_record_path(fine)).read_text())
    counts = record["provenance"]["training"]["parameters"]
    assert counts["trained"] < counts["all"] / 4
