"""`tasktransfer plan` and `snakemake -n` count the same trainings in every state of a study."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from dag_study import SMALL, Sandbox, sandbox

from tasktransfer import cli
from tasktransfer.designs.transfer.algorithms import STAGE_KINDS

THIRD = "topic_classification"
KEYS = {"datasets": {"DailyDialog": {"tasks": [*SMALL["datasets"]["DailyDialog"]["tasks"], THIRD]}}}


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepare a study of three tasks, two of which are finished."""
    made = sandbox(tmp_path_factory.mktemp("plan") / "half")
    made.write()
    made.run()
    made.write(**KEYS)
    return made.folder


@pytest.fixture
def study(half: Path, tmp_path: Path) -> Sandbox:
    shutil.copytree(half, tmp_path / "study", symlinks=True)
    return Sandbox(tmp_path / "study")


def planned(
    study: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> int:
    monkeypatch.chdir(study.folder)
    assert cli.main(["plan", "--config", "study.yaml", "--json"]) == 0
    left = json.loads(capsys.readouterr().out)["trainings"]["left"]
    assert isinstance(left, int)
    return left


def dry_run(study: Sandbox) -> Counter[str]:
    """Return the jobs by rule, as counted by `snakemake -n`."""
    done = study.call("--dry-run", "--quiet", "rules")
    assert done.returncode == 0, done.stdout + done.stderr
    words = [line.split() for line in (done.stdout + done.stderr).splitlines()]
    jobs = {row[0]: int(row[1]) for row in words if len(row) == 2 and row[1].isdecimal()}
    return Counter({kind: jobs[kind] for kind in STAGE_KINDS if kind in jobs})


def nothing(study: Sandbox) -> None:
    """Change nothing."""


def a_record_is_gone(study: Sandbox) -> None:
    study.paths("baseline", "metrics.json")[0].unlink()


def predictions_are_gone(study: Sandbox) -> None:
    study.paths("multitask", "rows.parquet")[0].unlink()


def a_record_is_damaged(study: Sandbox) -> None:
    study.paths("baseline", "metrics.json")[0].write_text("{")


def checkpoints_are_gone(study: Sandbox) -> None:
    for path in study.paths("baseline", "checkpoint"):
        shutil.rmtree(path)


def a_child_of_a_temporary_checkpoint_is_gone(study: Sandbox) -> None:
    next(p for p in study.paths("finetune", "metrics.json") if "+" in p.parents[1].name).unlink()


def everything_is_gone(study: Sandbox) -> None:
    shutil.rmtree(study.folder / "results")


@pytest.mark.parametrize(
    ("damage", "left"),
    [
        (nothing, 11),
        (a_record_is_gone, 12),
        (predictions_are_gone, 12),
        (a_record_is_damaged, 12),
        (checkpoints_are_gone, 13),
        (a_child_of_a_temporary_checkpoint_is_gone, 13),
        (everything_is_gone, 18),
    ],
)
def test_plan_and_dry_run_count_the_same(
    damage: Callable[[Sandbox], None],
    left: int,
    study: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(study)
    assert planned(study, monkeypatch, capsys) == left
    assert dry_run(study).total() == left


def test_after_the_run_nothing_is_left(
    study: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = planned(study, monkeypatch, capsys)
    assert sum(count for kind, count in study.run().items() if kind in STAGE_KINDS) == left
    assert planned(study, monkeypatch, capsys) == 0
    assert dry_run(study) == {}
