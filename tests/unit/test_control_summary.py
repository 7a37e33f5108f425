"""Average effects over controls, the default control, and the sentences that use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from study_records import write_records
from tasktransfer.core.runs import Run
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.algorithms import LONGER_BASELINE
from tasktransfer.designs.transfer.report.answer import (
    LONGER_ALGORITHM,
    describe_longer_training,
)
from tasktransfer.designs.transfer.runs import is_control
from tasktransfer.designs.transfer.statistics.controls import summarise_controls
from tasktransfer.results.collect import gather_records
from tasktransfer.results.frames import Frames, list_column_names
from tasktransfer.results.store import build_frame
from tasktransfer.results.study import Study
from transfer_frames import compute_frames

TASKS = ["emotion_recognition", "dialogue_nli", "topic_classification"]
STUDY: dict[str, Any] = {
    "study": "longer",
    "datasets": {"DailyDialog": {"tasks": TASKS}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
    "algorithms": ["pretrain_finetune", "multitask_finetune"],
    "controls": ["self_transfer", "longer_baseline", "shuffled_source"],
    "seeds": 4,
}


def open_changed(folder: Path, monkeypatch: pytest.MonkeyPatch, **keys: Any) -> Study:
    monkeypatch.chdir(folder)
    given = {key: value for key, value in {**STUDY, **keys}.items() if value is not None}
    Path("study.yaml").write_text(yaml.safe_dump(given))
    return open_study("study.yaml")


def list_controls(study: Study) -> set[str]:
    return {run.method for run in study.plan.runs if is_control(run)}


# --- the default control ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "planned"),
    [
        ({"training": {"recipe": "auto"}}, {LONGER_BASELINE}),
        ({"training": {"recipe": "auto"}, "controls": []}, set()),
        ({"training": {"recipe": "auto"}, "controls": ["self_transfer"]}, {"self_transfer"}),
        ({"training": {"recipe": "auto"}, "algorithms": ["pretrain_finetune"]}, set()),
        ({"training": {"recipe": "auto"}, "racing": {"seeds": [2, 4], "keep": [0.5]}}, set()),
        ({}, set()),
        ({"training": {"fidelity": "paper"}}, set()),
    ],
)
def test_studies_with_a_recipe_have_a_longer_baseline_by_default(
    keys: dict[str, Any], planned: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = open_changed(tmp_path, monkeypatch, **{"controls": None, **keys})
    assert list_controls(study) == planned


def test_a_default_control_has_the_digest_of_a_named_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = {"training": {"recipe": "auto"}}
    unnamed = open_changed(tmp_path, monkeypatch, controls=None, **recipe)
    named = open_changed(tmp_path, monkeypatch, controls=[LONGER_BASELINE], **recipe)
    assert unnamed.config.digest == named.config.digest
    assert [s.digest for s in unnamed.plan.stages] == [s.digest for s in named.plan.stages]


# --- the table ----------------------------------------------------------------------------------


def imitate_quality(run: Run) -> float:
    """Return scores in which longer training alone explains the gain of an algorithm."""
    return 0.8 if run.method in (LONGER_BASELINE, LONGER_ALGORITHM) else 0.4


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Frames:
    study = open_changed(tmp_path, monkeypatch)
    write_records(study, imitate_quality)
    return compute_frames(gather_records(study))


def test_a_gain_of_longer_training_is_not_a_gain_over_a_longer_baseline(tables: Frames) -> None:
    frame = tables["control_summary"]
    assert list(frame.columns) == list_column_names(columns.CONTROL_SUMMARY)
    rows = frame.set_index(["algorithm", "control"])
    longer = rows.loc[(LONGER_ALGORITHM, LONGER_BASELINE)]
    assert (longer["n_pairs"], longer["n_seeds"]) == (6, 4)
    assert longer["low"] < 0 < longer["high"]
    itself = rows.loc[(LONGER_ALGORITHM, "self_transfer")]
    assert itself["low"] > 10
    assert itself["q"] <= 0.05
    assert rows.loc[("pretrain_finetune", LONGER_BASELINE), "high"] < -10


def test_the_mean_is_that_of_transfers_minus_controls(tables: Frames) -> None:
    frame = tables["control_summary"].set_index(["algorithm", "control"])
    for (algorithm, control), row in frame.iterrows():
        transfers = tables["transfer_runs"][tables["transfer_runs"]["algorithm"] == algorithm]
        runs = tables["control_runs"][tables["control_runs"]["algorithm"] == control]
        keys = ["target", "seed", *(["source"] if control == "shuffled_source" else [])]
        both = transfers.merge(runs[[*keys, "score"]], on=keys, suffixes=("", "_of_control"))
        differences = both["score"] - both["score_of_control"]
        pairs = differences.groupby([both["source"], both["target"]]).mean()
        assert row["mean"] == pytest.approx(pairs.mean())
        assert row["low"] < row["mean"] < row["high"]


def test_one_seed_has_no_interval(tables: Frames) -> None:
    runs, control_runs = (
        tables[name][tables[name]["seed"] == 0] for name in ("transfer_runs", "control_runs")
    )
    frame = summarise_controls(runs, control_runs, Path("results"))
    assert len(frame)
    assert frame[["low", "high", "p", "q"]].isna().all(axis=None)


def test_without_runs_of_controls_there_are_no_rows(tables: Frames) -> None:
    runs, none = tables["transfer_runs"], tables["control_runs"].iloc[:0]
    assert summarise_controls(runs, none, Path("results")).empty


# --- the answer ---------------------------------------------------------------------------------

NO_CONTROLS = build_frame([], columns.CONTROL_SUMMARY)


def make_means(mean: float, low: float) -> pd.DataFrame:
    return pd.DataFrame({"algorithm": [LONGER_ALGORITHM], "mean": [mean], "joint_low": [low]})


def make_cells(q: float) -> pd.DataFrame:
    """Return a cell with a gain of three points."""
    cell = {"algorithm": LONGER_ALGORITHM, "delta": 3.0, "q": q, "significant": q <= 0.05}
    return pd.DataFrame([cell])


def test_the_answer_names_the_effect_over_a_longer_baseline(tables: Frames) -> None:
    frame = tables["control_summary"]
    (sentence,) = describe_longer_training(frame, make_means(9.0, 8.0), make_cells(0.01))
    assert "(longer_baseline), its mean effect with tiny-bert on DailyDialog is " in sentence
    assert sentence.endswith("points over 6 pairs, not significantly different from 0.")


@pytest.mark.parametrize(
    ("mean", "low", "q", "warns"),
    [
        (2.5, 1.3, 0.5, True),
        (2.5, -0.2, 0.5, False),
        (2.5, np.nan, 0.5, False),
        (2.5, np.nan, 0.01, True),
    ],
)
def test_a_gain_without_the_control_is_followed_by_a_warning(
    mean: float, low: float, q: float, warns: bool
) -> None:
    found = describe_longer_training(NO_CONTROLS, make_means(mean, low), make_cells(q))
    sentences = [*found]
    assert len(sentences) == warns
    assert all("may come from longer training" in each for each in sentences)
