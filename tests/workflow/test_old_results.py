"""A results folder of records of schema 2 is used on: nothing in it is trained again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from dag_study import Sandbox, sandbox

from old_records import make_old
from study_records import write_records
from tasktransfer import cli
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
STAGES = 2 + 2 + 4
"""Baselines, multitask trainings, fine-tunings."""
OF_FILES = ["predictions", "predictions_sha256", "inputs"]
"""Columns that say of which files a row is made: the old have other names and another content."""


def opened(**changes: Any) -> Study:
    Path("study.yaml").write_text(yaml.safe_dump(KEYS | changes))
    return open_study("study.yaml")


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """What the records say, and what statistics say of that, by name."""
    for command in ("collect", "statistics"):
        assert cli.main([command, "--config", "study.yaml"]) == 0
    return {path.stem: pd.read_parquet(path) for path in Path(study.tables).glob("*.parquet")}


def planned(folder: Sandbox) -> set[str]:
    """The trainings that Snakemake would start, as it names them."""
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
    assert schemas == {2}
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
