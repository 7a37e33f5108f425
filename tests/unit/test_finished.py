"""What is finished, as plan, status and the Snakefile see it."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from finished_stages import TASKS, finish_all, opened

from tasktransfer.finished import look

NAMED = {"dataset": "DailyDialog", "target": TASKS[2], "sources": TASKS[:2]}
KEYS = {
    "datasets": {"DailyDialog": {"tasks": TASKS}},
    "multi_source": {"mode": "named", "named": [NAMED]},
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_nothing_is_there_at_first() -> None:
    found = look(opened())
    assert (found.names, found.finished, found.again) == ({}, frozenset(), frozenset())


def test_a_finished_study_needs_no_temporary_checkpoints() -> None:
    study = opened(**KEYS)
    finish_all(study)
    assert look(study).finished == {stage.digest for stage in study.plan.stages}


def test_a_missing_child_costs_the_parent_whose_checkpoint_is_gone() -> None:
    study = opened()
    finish_all(study)
    child = next(s for s in study.plan.stages if s.parent and s.parent.kind == "multitask")
    Path(study.record(child)).unlink()
    found = look(study)
    assert child.parent is not None
    assert found.finished == {s.digest for s in study.plan.stages} - {
        child.digest,
        child.parent.digest,
    }
    assert found.again == {child.parent.digest}


@pytest.mark.parametrize("seed", range(8))
def test_it_agrees_with_what_the_snakefile_asks(seed: int) -> None:
    """Whatever of records and checkpoints is gone. (Predictions are apart: Snakemake never asks
    for them.)"""
    study = opened(**KEYS)
    finish_all(study)
    draw = random.Random(seed)
    for stage in study.plan.stages:
        if draw.random() < 0.25:
            Path(study.record(stage)).unlink()
        if draw.random() < 0.4:
            shutil.rmtree(study.checkpoint(stage), ignore_errors=True)
    expected = {stage.digest for stage in study.plan.stages if study.is_finished(stage)}
    assert look(study).finished == expected
    assert 0 < len(expected) < len(study.plan.stages)


def test_lost_predictions_are_told_apart() -> None:
    study = opened()
    finish_all(study)
    stage = study.plan.stages[0]
    (Path(study.folder(stage)) / "predictions.parquet").unlink()
    found = look(study)
    assert found.unpredicted == {stage.digest}
    assert stage.digest in found.finished
