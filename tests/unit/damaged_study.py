"""A finished study with constructed records, for tests with damaged ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from constructed_records import edit
from study_records import write_records
from tasktransfer.core.runs import Run
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.results import collect
from tasktransfer.results.frames import Frames
from tasktransfer.results.study import Study
from transfer_frames import compute_frames

TASKS = ["emotion_recognition", "dialogue_nli", "topic_classification"]
KEYS: dict[str, Any] = {
    "study": "constructed",
    "datasets": {"DailyDialog": {"tasks": TASKS}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
    "algorithms": ["pretrain_finetune", "multitask"],
    "seeds": 2,
}
RESULTS = Path("results")

Damage = Callable[[Path], object]
"""Spoils the record at a path, or what stands beside it."""


def opened(**keys: Any) -> Study:
    Path("study.yaml").write_text(yaml.safe_dump(KEYS | keys))
    return open_study("study.yaml")


def written_study(folder: Path) -> Path:
    """Write the study with all its records to a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_records(opened())
    return folder


def a_run(study: Study, algorithm: str = "multitask", seed: int = 1) -> Run:
    return next(
        run
        for run in select_transfer_runs(study.plan)
        if (run.method, run.seed, run.about["target"]) == (algorithm, seed, "dialogue_nli")
    )


def gather(study: Study) -> Frames:
    return compute_frames(collect.gather_records(study))


def edited(**changes: Any) -> Damage:
    """Return the record with values replaced (see ``edit``)."""
    return lambda record: edit(record, **changes)
