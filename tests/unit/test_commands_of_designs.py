"""Every command on a study of every design: it does its work, or says in one sentence why not."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from toy_study import STUDY

from tasktransfer import cli

PRESETS = Path(__file__).resolve().parents[2] / "workflow" / "presets"


def study_of(design: str) -> list[str]:
    """The options that open a small study of a design."""
    if design == "toy":
        Path("toy.yaml").write_text(yaml.safe_dump(STUDY))
        return ["--config", "toy.yaml"]
    name = "demo" if design == "transfer" else f"{design}-demo"
    return ["--config", str(PRESETS / f"{name}.yaml"), "--set", "results=results"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=["transfer", "empathetic", "panel", "probes", "toy"])
def study(request: pytest.FixtureRequest) -> list[str]:
    return study_of(request.param)


def test_a_good_config_is_valid(study: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["validate", *study]) == 0
    assert ": ok, study " in capsys.readouterr().out
