"""Training curves: one row per round of a run or training, in figures, tables and on the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from constructed_results import results_of
from record_factory import single_source_runs

from shown_results import shown_of, view_of
from tasktransfer.designs.transfer.figures.curves import (
    compute_mean_curves,
    plot_training_curves,
)
from tasktransfer.designs.transfer.report.heatmap_parts import (
    describe_tasks,
    get_run_key,
    group_curves,
)
from tasktransfer.present.figures import draw_figures
from tasktransfer.present.page.common_blocks import build_curves
from tasktransfer.results.common_frames import ROUNDS
from tasktransfer.results.state import RECORD
from tasktransfer.results.store import build_frame

TASKS = ("emotion_recognition", "topic_classification")
KEYS = ["dataset", "model", "algorithm", "source", "target", "seed"]


def test_means_and_ranges_are_over_sources_and_seeds() -> None:
    rows = [
        ("a", 0, 1, 2.0, 40.0),
        ("b", 1, 1, 4.0, 60.0),
        ("a", 0, 2, 1.0, 50.0),  # the other run stopped after round 1
        ("", 0, 1, np.nan, 10.0),
    ]
    names = ["source", "seed", "round", "loss", "dev_score"]
    curves = pd.DataFrame(rows, columns=names).assign(model="m", target="t")
    curves["algorithm"] = ["multitask"] * 3 + ["baseline"]
    first, second, alone = compute_mean_curves(curves).to_dict("records")
    assert (first["round"], first["runs"], first["loss_mean"]) == (1, 2, 3.0)
    assert (first["dev_score_min"], first["dev_score_max"]) == (40.0, 60.0)
    assert (second["round"], second["runs"], second["dev_score_mean"]) == (2, 1, 50.0)
    assert np.isnan(alone["loss_mean"]), "a run that is not trained on the target has no loss"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    runs = single_source_runs("DailyDialog", ["bert"], TASKS, [0, 1], ["multitask"])
    return results_of(tmp_path_factory.mktemp("records"), runs, lambda run: 50.0 + run[-1])


def test_a_figure_has_two_panels_per_target_and_its_numbers_as_csv(
    results: Any, tmp_path: Path
) -> None:
    curves = results["training_curves"]
    chosen = results["transfer_runs"].set_index(KEYS)
    per_run = curves.groupby(KEYS)
    assert set(per_run.groups) == set(chosen.index)
    for run, rows in per_run:
        assert len(rows) == chosen.loc[run, "epochs"]
        best = rows.set_index("round").loc[chosen.loc[run, "best_epoch"], "dev_score"]
        assert best == pytest.approx(chosen.loc[run, "dev_score"])
    figure = plot_training_curves(results, "DailyDialog")
    assert figure is not None
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["ER: loss", "ER: dev score", "TC: loss", "TC: dev score"]
    assert plot_training_curves(results, "Friends") is None
    shown = shown_of(results, ["training_curves"])
    out = tmp_path / "figures"
    draw_figures(shown, view_of(results), out)
    plotted = pd.read_csv(out / "training_curves_DailyDialog.csv")
    assert len(plotted) == len(compute_mean_curves(curves))
    assert plotted["dev_score_mean"].iloc[0] == pytest.approx(
        compute_mean_curves(curves)["dev_score_mean"].iloc[0]
    )
    (out / "training_curves_DailyDialog.csv").unlink()
    assert draw_figures(shown, view_of(results), out).redrawn == ["training_curves_DailyDialog"]


def test_the_page_has_the_curves_of_each_run_by_round() -> None:
    rows = [(2, 0.123456, 50.0), (1, np.nan, 40.0)]
    curves = pd.DataFrame(rows, columns=["round", "loss", "dev_score"])
    key = dict(zip(KEYS, ("d", "m", "multitask", "a", "t", 1), strict=True))
    assert group_curves(curves.assign(**key)) == {get_run_key(key): [[None, 0.1235], [40.0, 50.0]]}


def test_a_card_has_the_task_its_answer_and_its_source() -> None:
    cards = describe_tasks("DailyDialog", [*TASKS, "a task of no dataset"])
    assert [*cards] == [*TASKS]
    facts = dict(cards["topic_classification"]["facts"])
    assert facts["answer"] == "dialogue classification"
    assert facts["10 labels"].startswith("Ordinary Life, School Life, ")
    assert facts["score"] == "micro_f1, macro_f1"


# --- rounds of every training ---------------------------------------------------------------------


RUN = ("TC", "bert", 0, "stages/baseline/DailyDialog/bert/TC/seed0-12")


def test_every_training_has_its_rounds_and_one_selected_round(results: Any) -> None:
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
    name, record = "baseline · DailyDialog · bert · TC", f"{RUN[-1]}/{RECORD}"
    expected = [name, 0, record, [None, 0.6931, 0.5], [10.0, 31.23, 30.0], 1]
    assert json.loads(data[1]) == [expected]


@pytest.mark.parametrize("name", ["</script><b>", "<!--"])
def test_names_of_trainings_cannot_end_the_script(name: str) -> None:
    path = f"stages/baseline/{name}/seed0-12"
    block = build_curves(build_frame([("TC", "bert", 0, path, 1, 1.0, 2.0, True)], ROUNDS))
    assert block is not None
    assert name not in block.html


def test_a_study_without_trainings_has_no_curves() -> None:
    assert build_curves(build_frame([], ROUNDS)) is None
