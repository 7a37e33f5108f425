"""`validate` refuses missing data and models that a study needs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from finished_stages import MODEL, finish_all, opened
from tasktransfer import cli
from tasktransfer.designs import load_config

PRESETS = sorted((Path(__file__).resolve().parents[2] / "workflow" / "presets").glob("*.yaml"))


pytestmark = pytest.mark.usefixtures("here")


def needs_nothing(preset: Path) -> bool:
    """Return whether a preset generates its data and its models."""
    config = load_config(preset)
    made = not any(model.has_checkpoint for model in config.models)
    return config.data.generated and made


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.stem)
def test_a_preset_without_its_data(preset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["validate", "--config", str(preset)]
    assert cli.main([*command, "--config-only"]) == 0
    assert "not checked: data and models" in capsys.readouterr().out
    assert cli.main(command) == (0 if needs_nothing(preset) else 3)
    error = capsys.readouterr().err
    if not needs_nothing(preset):
        # One line for each input, and what to do about each.
        lines = error.removeprefix("error: ").splitlines()
        assert "--config-only" in lines[-1]
        assert all(re.search(r"\b(put|give|copy)\b", line, re.I) for line in lines[:-1]), error


def test_a_model_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    opened()
    study: dict[str, Any] = yaml.safe_load(Path("study.yaml").read_text())
    study["models"] = [{**MODEL, "checkpoint": "./gone"}]
    Path("study.yaml").write_text(yaml.safe_dump(study))
    assert cli.main(["validate", "--config", "study.yaml"]) == 4
    assert "model tiny-bert: The folder ./gone does not exist. Put" in capsys.readouterr().err
    assert cli.main(["validate", "--config", "study.yaml", "--config-only", "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert "./gone" in seen["not_checked"][1]


def test_a_finished_study_needs_neither(capsys: pytest.CaptureFixture[str]) -> None:
    """Its tables and figures are built from its records."""
    Path("model").mkdir()
    for file in ("config.json", "model.safetensors"):
        Path("model", file).write_text("{}")
    study = opened(models=[{**MODEL, "checkpoint": "./model"}])
    finish_all(study)
    shutil.rmtree("model")
    assert cli.main(["validate", "--config", "study.yaml"]) == 0
    assert "not checked: model tiny-bert: The folder ./model" in capsys.readouterr().out


def test_a_declared_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    declared = {
        "files": {"train": "chats.jsonl"},
        "shares": {"test": 0.3},
        "dialogue": {"text": "text"},
        "tasks": {"mood": {"kind": "dialogue_classification", "label": "mood"}},
    }
    study = {
        "study": "own",
        "datasets": {"Own": declared},
        "models": [MODEL],
        "algorithms": ["baseline"],
    }
    Path("study.yaml").write_text(yaml.safe_dump(study))
    assert cli.main(["validate", "--config", "study.yaml"]) == 3
    assert "chats.jsonl" in capsys.readouterr().err
