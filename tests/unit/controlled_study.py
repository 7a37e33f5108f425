"""A finished study with controls, in the working directory; constructed, never trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from study_records import Quality, write_records
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.collect.collect import Tables, collect_runs
from tasktransfer.designs.transfer.collect.planned import plan_file, read_plan
from tasktransfer.results.study import Study

TASKS = ["emotion_recognition", "dialogue_nli", "topic_classification"]
RESULTS = Path("results")
KEYS: dict[str, Any] = {
    "study": "controlled",
    "datasets": {"DailyDialog": {"tasks": TASKS}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
    "algorithms": ["pretrain_finetune", "multitask"],
    "controls": "all",
    "seeds": 5,
}


def finished(quality: Quality, **keys: Any) -> Study:
    Path("study.yaml").write_text(yaml.safe_dump(KEYS | keys))
    study = open_study("study.yaml")
    write_records(study, quality)
    Path("plan.json").write_text(json.dumps(plan_file(study, study.plan)))
    return study


def gather() -> Tables:
    plan = read_plan(Path("plan.json"))
    return collect_runs(RESULTS, plan.runs, controls=plan.controls)[0]
