"""A results folder with records of schema 2 remains usable: nothing is trained again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from dag_study import Sandbox, sandbox

from old_records import make_old, write_former
from study_records import write_records
from tasktransfer import cli
from tasktransfer.core import former
from tasktransfer.core.nodes import Stage
from tasktransfer.designs import open_study
from tasktransfer.operate.merge import merge_results
from tasktransfer.results.finished import look
from tasktransfer.results.study import Study

KEYS: dict[str, Any] = {
    "study": "old",
    "datasets": {"DailyDialog": {"tasks": ["emotion_recognition", "topic_classification"]}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
    "seeds": 1,
}
STAGES = 2 + 1 + 4
"""Baselines, the multitask training of both, fine-tunings."""
OF_FILES = ["predictions", "predictions_sha256", "inputs"]
"""Columns about a row's source files, which differ in name and content for old records."""


def opened(**changes: Any) -> Study:
    Path("study.yaml").write_text(yaml.safe_dump(KEYS | changes))
    return open_study("study.yaml")


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """Return the collected tables and statistics by name."""
    for command in ("collect", "statistics"):
        assert cli.main([command, "--config", "study.yaml"]) == 0
    return {path.stem: pd.read_parquet(path) for path in Path(study.tables).glob("*.parquet")}


def planned(folder: Sandbox) -> set[str]:
    """Return the trainings that Snakemake would start, with its names."""
    done = folder.call("trainings", "--dry-run")
    assert done.returncode == 0, done.stdout + done.stderr
    return set(re.findall(r"^Job \d+: (.*, seed \d+)$", done.stdout + done.stderr, re.MULTILINE))


def named(stage: Stage) -> str:
    return f"{stage.kind} {stage.dataset}/{stage.model.name}/{stage.label}, seed {stage.seed}"


def test_records_of_schema_2_are_drawn_extended_and_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sandbox(tmp_path / "study")
    monkeypatch.chdir(folder.folder)
    study = opened()
    write_records(study)
    before = tables(study)

    make_old(study)
    schemas = {json.loads(Path(study.record(s)).read_text())["schema"] for s in study.plan.stages}
    assert schemas == {2, 4}
    assert planned(folder) == set()
    for name, table in tables(study).items():
        files = [column for column in OF_FILES if column in table]
        pd.testing.assert_frame_equal(
            table.drop(columns=files), before[name].drop(columns=files), obj=name
        )

    more = opened(seeds=2)
    assert len(look(more).finished) == STAGES
    new = [stage for stage in more.plan.stages if stage.seed == 1]
    assert planned(folder) == {named(stage) for stage in new}
    assert len(new) == STAGES

    elsewhere = opened(results="elsewhere")
    merged = merge_results(elsewhere, Path("results"))
    assert merged["counts"]["taken"] == STAGES
    assert len(look(elsewhere).finished) == STAGES


def test_results_of_the_release_before_are_merged_under_the_digests_of_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two former trainings with the same updates become one; tables and figures are unchanged."""
    monkeypatch.chdir(tmp_path)
    study = opened()
    write_records(study)
    before = tables(study)
    assert write_former(study, Path("former")) == STAGES + 1
    Path("results").rename("kept")
    assert len(look(opened()).finished) == 0

    capsys.readouterr()
    assert cli.main(["merge", "former", "--config", "study.yaml", "--dry-run"]) == 0
    assert not Path("results/stages").exists()
    capsys.readouterr()
    assert cli.main(["merge", "former", "--config", "study.yaml"]) == 0
    said = capsys.readouterr().out
    assert f"{STAGES}  taken" in said
    assert f"{STAGES + 1} records from an older release re-keyed as {STAGES} nodes" in said
    assert len(look(opened()).finished) == STAGES
    for name, table in tables(opened()).items():
        files = [column for column in OF_FILES if column in table]
        pd.testing.assert_frame_equal(
            table.drop(columns=files), before[name].drop(columns=files), obj=name
        )


def half_of_multitask() -> Path:
    return sorted(Path("former/stages/multitask").rglob("metrics.json"))[0]


def without_the_other_half() -> str:
    half_of_multitask().unlink()
    return "which has no record, so it must be trained again"


def with_other_losses() -> str:
    record = json.loads(half_of_multitask().read_text())
    record["training"]["rounds"][0]["train_loss"]["emotion_recognition"] += 1e-9
    half_of_multitask().write_text(json.dumps(record))
    return "now count as one training, but their losses differ"


def after_another_card() -> str:
    former._cards_then()["DailyDialog"]["topic_classification"] = "0" * 16
    return "the task card of DailyDialog/topic_classification has changed"


@pytest.mark.parametrize("change", [without_the_other_half, with_other_losses, after_another_card])
def test_what_cannot_be_known_is_not_taken(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[], str],
) -> None:
    monkeypatch.chdir(tmp_path)
    study = opened()
    write_records(study)
    write_former(study, Path("former"))
    Path("results").rename("kept")
    try:
        why = change()
        assert cli.main(["merge", "former", "--config", "study.yaml"]) == 6
    finally:
        former._cards_then.cache_clear()
    told = capsys.readouterr()
    assert "not re-keyed: " in told.out and why in told.out
    assert not list(Path("results/stages/multitask").rglob("metrics.json"))
    assert list(Path("results/stages/baseline").rglob("metrics.json"))
