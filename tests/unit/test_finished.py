"""Finished nodes, as plan, status and the Snakefile determine them."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from constructed_records import edit
from finished_stages import TASKS, finish_all, opened
from tasktransfer import cli
from tasktransfer.operate.pilot import count_unfinished_nodes
from tasktransfer.results import damage
from tasktransfer.results.node_folders import inspect_nodes, is_finished

NAMED = {"dataset": "DailyDialog", "target": TASKS[2], "sources": TASKS[:2]}
KEYS = {
    "datasets": {"DailyDialog": {"tasks": TASKS}},
    "multi_source": {"mode": "named", "named": [NAMED]},
}


pytestmark = pytest.mark.usefixtures("here")


def test_nothing_is_there_at_first() -> None:
    found = inspect_nodes(opened())
    assert (found.names, found.finished, found.again) == ({}, frozenset(), frozenset())


def test_a_finished_study_needs_no_temporary_checkpoints() -> None:
    study = opened(**KEYS)
    finish_all(study)
    assert inspect_nodes(study).finished == {stage.digest for stage in study.plan.stages}


def test_a_missing_child_costs_the_parent_whose_checkpoint_is_gone() -> None:
    study = opened()
    finish_all(study)
    stages = study.plan.stages
    child, parent = next((s, p) for s in stages for p in s.parents if p.kind == "multitask")
    Path(study.get_record_path(child)).unlink()
    found = inspect_nodes(study)
    assert found.finished == {s.digest for s in study.plan.stages} - {
        child.digest,
        parent.digest,
    }
    assert found.again == {parent.digest}


@pytest.mark.parametrize("seed", range(8))
def test_it_agrees_with_what_the_snakefile_asks(seed: int) -> None:
    """For any missing records, predictions and checkpoints."""
    study = opened(**KEYS)
    finish_all(study)
    draw = random.Random(seed)
    for stage in study.plan.stages:
        if draw.random() < 0.25:
            Path(study.get_record_path(stage)).unlink()
        if draw.random() < 0.1:
            Path(study.get_node_folder(stage), "rows.parquet").unlink(missing_ok=True)
        if draw.random() < 0.4:
            shutil.rmtree(study.get_checkpoint_folder(stage), ignore_errors=True)
    expected = {stage.digest for stage in study.plan.stages if is_finished(study, stage)}
    assert inspect_nodes(study).finished == expected
    assert 0 < len(expected) < len(study.plan.stages)


def edited(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: edit(folder / "metrics.json", **changes)


def of_another_stage(folder: Path) -> None:
    others = (p for p in folder.parents[1].rglob("metrics.json") if p.parent != folder)
    shutil.copy(next(others), folder / "metrics.json")


def written(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: bool((folder / name).write_bytes(content)) and None


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "empty": (written("metrics.json", b""), "not valid JSON"),
    "truncated": (written("metrics.json", b'{"schema": 3, "node'), "not valid JSON"),
    "binary": (written("metrics.json", bytes(range(256))), "not valid JSON"),
    "deep": (written("metrics.json", b"[" * 100_000), "not valid JSON"),
    "no object": (written("metrics.json", b"[]"), "must be an object"),
    "schema": (edited(schema=5), "has schema 5"),
    "a schema that is gone": (edited(schema=1), "has schema 1"),
    "forged": (
        edited(training__selections__0__dev_score=99.0),
        "training.selections[0].dev_score: The value is 99.0, but",
    ),
    "contradicts its identity": (edited(data_revision="x"), "data_revision: The value is 'x', but"),
    "has lost its results": (
        edited(results={}),
        "rows.rows: The value is 4, but results has 0 instances",
    ),
    "names no rows": (edited(rows=None), "rows: The value is null"),
    "rows gone": (lambda f: (f / "rows.parquet").unlink(), "The file is missing"),
    "rows cut off": (written("rows.parquet", b"PAR1"), "SHA-256"),
    "another stage": (of_another_stage, "node.digest"),
}


@pytest.mark.parametrize(("harm", "said"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_record_is_finished_nowhere(
    harm: Callable[[Path], None], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    study = opened()
    finish_all(study)
    assert inspect_nodes(study).damaged == {}
    stage = study.plan.stages[1]
    harm(Path(study.get_node_folder(stage)))
    damage.get_valid_folder_cache.cache_clear()  # another process
    found = inspect_nodes(study)
    assert said in found.damaged[stage.digest]
    assert stage.digest not in found.finished
    assert len(found.finished) == 6
    assert count_unfinished_nodes(study) == {("tiny-bert", 0): 1}
    for command, count in (("plan", "done: 6, left: 1"), ("status", "6 of 7 trainings done")):
        assert cli.main([command, "--config", "study.yaml"]) == 0
        out = capsys.readouterr().out
        assert count in out
        assert said in out


def test_a_record_that_was_found_right_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    study = opened()
    finish_all(study)
    inspect_nodes(study)
    damage.get_valid_folder_cache.cache_clear()
    monkeypatch.setattr(damage, "inspect_record", lambda *_: ("read again", None))
    assert len(inspect_nodes(study).finished) == 7
    record = Path(study.get_record_path(study.plan.stages[0]))
    before = record.stat()
    content = record.read_bytes()
    record.write_bytes(content)
    os.utime(record, ns=(before.st_atime_ns, before.st_mtime_ns))
    # Same size, same time of change: the kernel's own time tells that it was written to.
    assert [*inspect_nodes(study).damaged.values()] == ["read again"]


def test_what_is_set_aside_never_takes_the_place_of_what_was(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / "metrics.json").write_text(f"damaged {number}")
        kept = damage.set_files_aside(tmp_path)
        assert [path.name for path in kept] == [f"metrics.json.damaged-{number}"]
    assert (tmp_path / "metrics.json.damaged-1").read_text() == "damaged 1"
    assert damage.set_files_aside(tmp_path) == []
