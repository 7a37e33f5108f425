"""The training benchmark, executed with tiny models."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from benchmarks.training_speed.__main__ import main
from benchmarks.training_speed.cases import Case

pytestmark = pytest.mark.slow


def test_this_trainer_and_hf_trainer_for_real(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    case = Case("encoder", "emotion_recognition")
    arguments = ["--quick", "--data", "tiny_world", "--cases", case.name, "--threads", "1"]
    arguments += ["--contestants", "tasktransfer", "tlidb", "hf_trainer", "--out", "bench.json"]
    assert main(arguments) == 0
    result = json.loads(Path("bench.json").read_text())
    present = ["tasktransfer"]
    present += ["hf_trainer"] * (importlib.util.find_spec("accelerate") is not None)
    rows = {row["contestant"]: row for row in result["medians"]}
    assert sorted(rows) == sorted(present)
    for row in rows.values():
        assert row["train_samples_per_second"] > 0 and row["test_samples_per_second"] > 0
        assert row["start_up_seconds"] > 0 and row["memory_mb"] > 50
        assert 0 < row["share_of_limit_training"] < 1
    for run in result["runs"]:
        assert (run["updates"], run["train_samples"]) == (1, 60)
        assert (run["dev_samples"], run["test_samples"]) == (8, 8)
    assert "no --toolkit" in result["skipped"]["tlidb"]
    out = capsys.readouterr().out
    assert out == Path("bench.md").read_text() and "TLiDB was skipped" in out
