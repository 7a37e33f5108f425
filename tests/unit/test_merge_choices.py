"""``merge`` and ``pack`` take the choices with them on which a study's runs depend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from finished_stages import TASKS, finish_all, opened
from tasktransfer import cli
from tasktransfer.designs.transfer.choices import LEARNED_TARGETS
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.results.planned_study import write_choice
from tasktransfer.results.study import Study

KEYS: dict[str, Any] = {
    "check_baselines": True,
    "references": ["most_frequent"],
    "algorithms": ["baseline", "pretrain_finetune"],
}
CHOICE = Path("results/tables/learned_targets.json")

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def theirs(here: Path) -> Study:
    """Return a finished study in which one of two targets has been learned."""
    study: Study = opened("theirs.yaml", results="theirs", **KEYS)
    baselines = {
        run.about["target"]: [node.digest for node in run.judged]
        for run in study.plan.runs
        if run.method == BASELINE
    }
    rows = [
        {
            "dataset": "DailyDialog",
            "model": study.config.models[0].name,
            "target": target,
            "dev_score": 2.0,
            "reference": "most_frequent",
            "reference_dev_score": 1.0 if target == TASKS[0] else 3.0,
            "learned": target == TASKS[0],
            "baselines": digests,
        }
        for target, digests in baselines.items()
    ]
    write_choice("theirs", LEARNED_TARGETS, rows)
    study = study.with_choices()
    assert len(study.plan.stages) == len(rows) + 1
    finish_all(study)
    return study


def merge(other: str, *words: str) -> int:
    return cli.main(["merge", other, "--config", "study.yaml", "--json", *words])


@pytest.mark.parametrize("is_packed", [False, True], ids=["folder", "pack"])
def test_transfers_that_follow_from_a_choice_are_copied(
    theirs: Study, capsys: pytest.CaptureFixture[str], is_packed: bool
) -> None:
    other = "theirs"
    if is_packed:
        other = "theirs.parquet"
        assert cli.main(["pack", "--config", "theirs.yaml", "--out", other, "--with-text"]) == 0
    opened(**KEYS)
    capsys.readouterr()
    assert merge(other, "--dry-run") == 0
    assert not CHOICE.exists()
    assert json.loads(capsys.readouterr().out)["elsewhere"] == 1
    assert merge(other) == 0
    merged = json.loads(capsys.readouterr().out)
    assert (merged["counts"]["copied"], merged["elsewhere"]) == (len(theirs.plan.stages), 0)
    assert CHOICE.read_text() == Path("theirs/tables/learned_targets.json").read_text()


def test_a_choice_for_another_config_is_refused_and_not_copied(
    theirs: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(**KEYS, training={"epochs": 9})
    assert merge("theirs") != 0
    assert "theirs: The selection does not fit the study." in capsys.readouterr().err
    assert not CHOICE.exists()


def test_an_own_choice_is_kept(theirs: Study) -> None:
    opened(**KEYS)
    own = json.loads(Path("theirs/tables/learned_targets.json").read_text())
    write_choice("results", LEARNED_TARGETS, [row | {"learned": False} for row in own])
    assert merge("theirs") == 0
    assert not any(row["learned"] for row in json.loads(CHOICE.read_text()))
