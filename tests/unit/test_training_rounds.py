"""The rounds of every training: one row per round, and the learning curves on the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from constructed_results import results_of
from record_factory import single_source_runs

from tasktransfer.present.page.origin import build_curves
from tasktransfer.results.common_frames import ROUNDS
from tasktransfer.results.state import RECORD
from tasktransfer.results.store import build_frame

TASKS = ("emotion_recognition", "topic_classification")
RUN = ("TC", "bert", 0, "stages/baseline/DailyDialog/bert/TC/seed0-12")


def test_every_training_has_its_rounds_and_one_selected_round(tmp_path: Path) -> None:
    runs = single_source_runs("DailyDialog", ["bert"], TASKS, [0, 1], ["multitask"])
    results = results_of(tmp_path, runs, lambda run: 50.0 + run[-1])
    rounds, resources = results["training_rounds"], results["resources"]
    trainings = resources[resources["kind"] == "stage"].set_index("path")
    by_training = rounds.groupby("path", sort=False)
    assert set(by_training.groups) == set(trainings.index)
    for path, rows in by_training:
        assert (rows["round"] > 0).sum() == trainings.loc[path, "rounds"]
        selected = rows[rows["selected"]]
        assert len(selected) == 1
        assert selected["dev_score"].iloc[0] == rows["dev_score"].max()


def test_the_page_has_loss_dev_score_and_selected_round_of_each_training() -> None:
    rows = [
        (*RUN, 0, None, 10.0, False),
        (*RUN, 1, 0.693147, 31.23456, True),
        (*RUN, 2, 0.5, 30.0, False),
    ]
    block = build_curves(build_frame(rows, ROUNDS))
    assert block is not None
    assert "(1 training)" in block.html
    data = re.search(r'id="training-data">(.*?)</script>', block.html, re.DOTALL)
    assert data is not None
    assert json.loads(data[1]) == [
        [
            "baseline · DailyDialog · bert · TC",
            0,
            f"{RUN[-1]}/{RECORD}",
            [None, 0.6931, 0.5],
            [10.0, 31.23, 30.0],
            1,
        ]
    ]


@pytest.mark.parametrize("name", ["</script><b>", "<!--"])
def test_names_of_trainings_cannot_end_the_script(name: str) -> None:
    path = f"stages/baseline/{name}/seed0-12"
    block = build_curves(build_frame([("TC", "bert", 0, path, 1, 1.0, 2.0, True)], ROUNDS))
    assert block is not None
    assert name not in block.html


def test_a_study_without_trainings_has_no_curves() -> None:
    assert build_curves(build_frame([], ROUNDS)) is None
