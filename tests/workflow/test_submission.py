"""The workflow's submission target: its inputs, and that ``all`` does not include it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dag_study import MODEL, OTHER, A, B, Sandbox, sandbox

CHALLENGE: dict[str, Any] = {
    "rules": "challenge",
    "datasets": {
        "DailyDialog": {"tasks": [A, B]},
        "Friends": {"tasks": ["question_answering", "relation_extraction"]},
    },
    "algorithms": ["multitask"],
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    made = sandbox(tmp_path_factory.mktemp("submission") / "study")
    made.write(**CHALLENGE)
    return made


def archives(study: Sandbox) -> set[str]:
    return {path.name for path in (study.folder / "results" / "submissions").glob("*")}


def test_a_submission_per_dataset_and_model_from_finished_records(study: Sandbox) -> None:
    made = study.run()
    assert (made["baseline"], made["multitask"]) == (4, 2)
    assert archives(study) == set(), "all makes no archives"
    assert study.run("submission") == {"submit": 2}, "trains nothing again"
    names = {"DailyDialog-tiny-bert.zip", "Friends-tiny-bert.zip"}
    assert archives(study) == names | {f"{name}.json" for name in names}
    study.write(**CHALLENGE, models=[MODEL, OTHER])
    wanted = "results/submissions/Friends-tiny-gpt.zip"
    assert study.run(wanted) == {"baseline": 2, "multitask": 1, "submit": 1}


def test_a_free_study_is_reported_before_anything_is_trained(tmp_path: Path) -> None:
    made = sandbox(tmp_path / "free")
    made.write(**{**CHALLENGE, "rules": "free"})
    done = made.call("submission")
    assert done.returncode != 0
    message = "A study with rules: free cannot be submitted. Set rules: challenge"
    assert message in done.stdout + done.stderr
    assert not made.paths("", "metrics.json")


def test_what_the_rules_forbid_stops_the_workflow_at_its_start(tmp_path: Path) -> None:
    made = sandbox(tmp_path / "forbidden")
    made.write(**CHALLENGE, data={"few_sample": False})
    done = made.call()
    assert done.returncode != 0
    message = "few_sample: The value is false, against the challenge's rule 'few-sample data'"
    assert message in done.stdout + done.stderr
    assert not made.paths("", "metrics.json")
