"""A study of baselines alone, from constructed records to its report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from study_records import write_records
from tasktransfer.cli import main
from tasktransfer.designs import get_design, open_study
from tasktransfer.designs.outputs import list_outputs

STUDY = {
    "study": "alone",
    "data": {"few_sample": False},
    "datasets": {"DailyDialog": {"tasks": ["emotion_recognition", "topic_classification"]}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
    "algorithms": [],
    "selectors": ["size"],
    "controls": ["longer_baseline"],
    "seeds": 2,
}


@pytest.mark.parametrize("keys", [{}, {"selectors": [], "controls": [], "pairs": []}])
def test_baselines_alone_are_planned_collected_and_shown(
    keys: dict[str, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text(yaml.safe_dump({**STUDY, **keys}))
    study = open_study("study.yaml")
    assert main(["plan", "study.yaml", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["runs"]["by_method"]
    assert counts["baseline"] == 4 and "pretrain_finetune" not in counts
    write_records(study)
    for command in ("status", "collect", "statistics", "figures", "report"):
        assert main([command, "study.yaml"]) == 0, capsys.readouterr().err
    promised = list_outputs(get_design(study.config), study).printed
    assert [file for file in promised if not Path("results", file).exists()] == []
    page = Path("results/report.html").read_text()
    assert "Mean scores of the baselines (0-100): DailyDialog/emotion_recognition with" in page
    assert "The study has no transfer, so it does not show" in page
    assert "How well do the study's models solve each task?" in page.replace("&#39;", "'")
    assert "has neither single-source transfer nor a prompted model" in page
