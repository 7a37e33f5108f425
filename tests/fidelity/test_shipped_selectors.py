"""Selectors, prompted scores and times of the shipped matrix: pages agree with its tables."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pandas as pd
import pytest

from shipped_records import list_lines
from tasktransfer.datasets import get_task
from tasktransfer.designs.transfer.recommend import read_tables_evidence
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.operate.forecast.rates import Rates
from tasktransfer.results.frames import Frames
from tasktransfer.results.records import read_record
from tasktransfer.results.study import Study
from tasktransfer.selection.evidence import (
    add_source_mean,
    compute_selector_regret,
    read_shipped_evidence,
)
from tasktransfer.selection.regret import FLOORS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SELECTION = (ROOT / "docs" / "selection.md").read_text().split("### On the shipped matrix")[1]
WORDS = " ".join(SELECTION.split())
PROMPTED = (ROOT / "docs" / "prompted.md").read_text().split("## First numbers")[1]
ALGORITHMS = ("pretrain_finetune", "multitask", "multitask_finetune")


@pytest.fixture(scope="module")
def regret(matrix: Study, frames: Frames) -> pd.DataFrame:
    """Return regret@1 over both datasets' targets."""
    frame = pd.read_parquet(Path(matrix.tables, "regret.parquet"))
    return frame[(frame["measure"] == "regret@1") & (frame["dataset"] == "all")]


def test_the_table_of_selectors_is_of_these_records(matrix: Study, regret: pd.DataFrame) -> None:
    values = regret.set_index(["selector", "algorithm"])
    expected = []
    for selector in matrix.config.selectors:  # type: ignore[attr-defined]
        rows = [values.loc[(selector, algorithm)] for algorithm in ALGORITHMS]
        numbers = [f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]" for row in rows]
        expected.append([selector, *numbers])
    for column, name in FLOORS.items():
        floors = [f"{values.loc[('random', algorithm)][column]:.2f}" for algorithm in ALGORITHMS]
        expected.append([f"({name})", *floors])
    assert list_lines(SELECTION, r"^\| [\w(), ]+ \| \d.* \|$") == expected


def test_no_selector_is_told_from_random_or_source_mean(regret: pd.DataFrame) -> None:
    assert (regret["n_targets"] == 9).all()
    assert not (regret["to_source_mean_q"] <= 0.05).any()
    assert regret["to_random_q"].min() > 0.05
    assert f"(smallest q against random: {regret['to_random_q'].min():.2f})" in WORDS
    least = regret.loc[regret.groupby("algorithm")["value"].idxmin()]
    assert dict(zip(least["algorithm"], least["selector"], strict=True)) == {
        **dict.fromkeys(ALGORITHMS[:2], "taskemb"),
        "multitask_finetune": "roe",
    }
    random = regret[regret["selector"] == "random"].set_index("algorithm").loc[[*ALGORITHMS]]
    better = [f"{value:.1f}" for value in random["floor_random"] - random["floor"]]
    first, second, third = better
    assert (
        f"by {first} points for pre-train → fine-tune, {second} points for multitask and" in WORDS
    )
    assert f"{third} points for multitask → fine-tune" in WORDS
    assert random["floor"].min() > 2 and "a regret of more than two points" in WORDS


def test_the_evidence_of_recommend_is_of_these_tables(matrix: Study, regret: pd.DataFrame) -> None:
    built = read_tables_evidence(Path(matrix.tables))
    assert built is not None
    shipped = read_shipped_evidence()
    pd.testing.assert_frame_equal(built, shipped)
    judging = add_source_mean(shipped)
    for algorithm, rows in judging[judging["learned"]].groupby("algorithm"):
        of_table = regret[regret["algorithm"] == algorithm].set_index("selector")
        judged = compute_selector_regret(rows).loc[of_table.index]
        for column in ("value", "low", "high", "to_random_q"):
            assert judged[column].to_numpy() == pytest.approx(
                of_table[column].to_numpy(), nan_ok=True
            )
    emotions = shipped[shipped["learned"] & (shipped["algorithm"] == ALGORITHMS[0])]
    means = emotions.groupby(["dataset", "source", "target"])["delta"].mean()
    lowest = means["DailyDialog"].groupby("source").mean()
    assert lowest.idxmin() == "emotion_recognition"
    words = " ".join((ROOT / "docs" / "selection.md").read_text().split())
    assert f"(−{-lowest.min():.1f} points over six targets)" in words


# --- a prompted language model ------------------------------------------------------------------


@pytest.fixture(scope="module")
def asked(matrix: Study, frames: Frames) -> pd.DataFrame:
    """Return the rows of prompted runs by dataset, target and shots."""
    frame = pd.read_parquet(Path(matrix.tables, "prompted.parquet"))
    return frame[frame["target"] != ""].set_index(["dataset", "target", "shots"])


@pytest.fixture(scope="module")
def trained(frames: Frames) -> pd.Series[float]:
    """Return the mean scores of the baselines by dataset and target."""
    runs = frames["transfer_runs"]
    baselines = runs[runs["algorithm"] == "baseline"]
    return baselines.groupby(["dataset", "target"])["score"].mean()


def test_the_table_of_asked_scores_is_of_these_records(
    asked: pd.DataFrame, trained: pd.Series[float]
) -> None:
    expected = []
    for dataset, target in asked.index.droplevel("shots").unique():
        rows = [asked.loc[(dataset, target, shots)] for shots in (0, 4)]
        told = [f"{row['score']:.1f} [{row['low']:.1f}, {row['high']:.1f}]" for row in rows]
        name = target.replace("_", " ").replace("dialogue reasoning ", "reasoning, ")
        spread = max(row["spread"] for row in rows)
        expected.append(
            [f"{name} ({dataset})", *told, f"{spread:.1f}", f"{trained[dataset, target]:.1f}"]
        )
    lines = list_lines(PROMPTED, r"^\| \w[^|]*\([DF]\w+\) \|.*\|$")
    # The most frequent answer of the same 200 instances needs the dialogues.
    assert [[*line[:4], line[5]] for line in lines] == expected


def test_what_the_page_says_of_asking(asked: pd.DataFrame, trained: pd.Series[float]) -> None:
    best = asked.groupby(["dataset", "target"])[["score", "high"]].max()
    assert (trained.reindex(best.index) > best["score"]).all()
    beyond = int((trained.reindex(best.index) > best["high"]).sum())
    page = " ".join(PROMPTED.split())
    assert f"higher than the prompted model on all {len(best)} tasks**" in page
    assert f"above the prompted model's interval on {beyond} of these tasks" in page
    assert f"up to {asked['spread'].max():.0f} points apart" in page


def test_asking_takes_about_what_is_forecast(matrix: Study) -> None:
    """The median is used, since some of the processor cores were busy with other work."""
    rates = Rates("cpu", {"float32": 185e9, "bfloat16": 1184e9}, "its machine", "measured")
    estimates = Estimates(matrix, "cpu", rates)
    factors = []
    for node in matrix.plan.evaluations:
        record = Path(matrix.get_record_path(node))
        if node.asked is not None and record.exists():
            made = read_record(record)["provenance"]
            if made["host"]["device"] == "cpu":
                factors.append(made["seconds"]["total"] / estimates.estimate_seconds(node))
    assert len(factors) > 50
    assert 1 / 1.5 < median(factors) < 1.5


def test_what_the_page_of_speed_says_of_its_minutes(matrix: Study) -> None:
    """The minutes are per task, and for all trainings on two tasks."""
    page = (ROOT / "docs" / "development" / "performance.md").read_text()
    minutes: dict[tuple[str, str], float] = {}
    for stage in matrix.plan.stages:
        made = read_record(Path(matrix.get_record_path(stage)))["provenance"]
        if made["host"]["device"] == "cpu":
            continue  # the probe's
        task, *others = (get_task(stage.dataset, name).short for name in stage.train_tasks)
        key = (stage.dataset, "two tasks" if others else task)
        minutes[key] = minutes.get(key, 0.0) + made["seconds"]["total"] / 60
    assert len(minutes) == 17 + 2
    for (_, name), value in minutes.items():
        assert f" {name} {value:.1f}" in page
