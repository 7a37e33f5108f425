"""Effects planted in the tiny world are found with the real Snakemake, trainer and tables."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from calls import ENVIRONMENT, snakemake, snakemake_words
from scipy import stats

import tasktransfer as tt
from releases import PAPER_TASKS
from tasktransfer import metrics
from tasktransfer.data.cache import read_instances
from tasktransfer.datasets.tiny_world import HELPFUL, UNRELATED
from tasktransfer.designs.transfer.algorithms import CONTROLS
from tasktransfer.designs.transfer.statistics.controls import BEATS, CANNOT_TELL, HURTS
from tasktransfer.results.records import read_record, select_comparable_parts
from tasktransfer.tasks.card import Task

pytestmark = pytest.mark.slow

MODEL = {"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny", "max_length": 128}
TRAINING = {"learning_rate": 2e-3, "batch_size": 16, "epochs": 20}
PLANTED = [pair for pair in (*HELPFUL, *UNRELATED) if pair.dataset == "DailyDialog"]

# Two studies share a results folder: neither trains again what the other has trained.
EVERY_TASK: dict[str, Any] = {
    "study": "every task",
    "datasets": {"DailyDialog": {}, "Friends": {}},
    "models": [MODEL],
    "algorithms": ["baseline"],
    "seeds": [0, 1],  # not every seed learns every task in 20 epochs
    "training": TRAINING,
}
PAIRS: dict[str, Any] = {
    "study": "planted pairs",
    "datasets": {
        "DailyDialog": {
            "tasks": list(dict.fromkeys(t for p in PLANTED for t in (p.source, p.target))),
            "pairs": [{"source": p.source, "target": p.target} for p in PLANTED],
        }
    },
    "models": [MODEL],
    "algorithms": ["pretrain_finetune"],
    "seeds": 5,
    "training": TRAINING,
}


def write(folder: Path, study: dict[str, Any]) -> None:
    (folder / "study.yaml").write_text(yaml.safe_dump(study))


def run(folder: Path, study: dict[str, Any], *targets: str) -> None:
    write(folder, study)
    snakemake(folder, *targets)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run both studies to the end in a folder."""
    folder = tmp_path_factory.mktemp("planted")
    run(folder, EVERY_TASK, "trainings")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("metrics.json")}
    run(folder, PAIRS)
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())
    return folder


def majority_score(task: Task, folder: Path) -> float:
    """Return the test score of always giving the most frequent answer of the training set."""
    train = read_instances(folder, task.name, "train")
    test = [row.target for row in read_instances(folder, task.name, "test")]
    frequent = Counter(
        row.target if task.kind != "span" else row.target[:1] for row in train
    ).most_common(1)[0][0]
    return metrics.compute_task_score(
        task, metrics.evaluate_predictions(task, [frequent] * len(test), test)
    )


@pytest.mark.parametrize("task", PAPER_TASKS, ids=lambda task: task.name)
def test_every_task_beats_its_majority_class(world: Path, task: Task) -> None:
    folder = world / "results/stages/baseline" / task.dataset / "tiny-bert" / task.short
    records = [read_record(path) for path in folder.glob("seed[01]-*/metrics.json")]
    (instances,) = (world / "results/data/instances").glob(f"{task.dataset}-*-few")
    assert len(records) == 2
    assert all(record["synthetic"] for record in records)
    best = max(record["results"][task.name]["score"] for record in records)
    assert best > majority_score(task, instances)


def compute_deltas(world: Path, source: str, target: str) -> list[float]:
    results = tt.load_results(world / "results")
    assert results.metadata["synthetic"]
    rows = results["deltas"]
    chosen = rows[(rows["source"] == source) & (rows["target"] == target)]
    assert sorted(chosen["seed"]) == [0, 1, 2, 3, 4]
    return [float(delta) for delta in chosen["delta"]]


def compute_low(deltas: list[float]) -> float:
    """Return the lower end of the 95 % t-interval of the mean over seeds."""
    mean = sum(deltas) / len(deltas)
    low, _ = stats.t.interval(0.95, len(deltas) - 1, loc=mean, scale=stats.sem(deltas))
    return float(low)


@pytest.mark.parametrize("pair", [p for p in PLANTED if p in HELPFUL], ids=lambda p: p.source)
def test_a_pair_planted_to_help_is_found_to_help(world: Path, pair: Any) -> None:
    assert compute_low(compute_deltas(world, pair.source, pair.target)) > 0


@pytest.mark.parametrize("pair", [p for p in PLANTED if p in UNRELATED], ids=lambda p: p.source)
def test_a_pair_planted_as_unrelated_is_not_found_to_help(world: Path, pair: Any) -> None:
    assert compute_low(compute_deltas(world, pair.source, pair.target)) <= 0


@pytest.fixture(scope="module")
def controlled(world: Path) -> pd.DataFrame:
    """Run the planted pairs with all controls: 30 trainings in addition to the existing ones."""
    run(world, {**PAIRS, "controls": list(CONTROLS)})
    return pd.read_parquet(world / "results/tables/controls.parquet")


def test_a_planted_pair_beats_its_controls_and_an_unrelated_one_does_not(
    controlled: pd.DataFrame,
) -> None:
    for pair in PLANTED:
        rows = controlled[controlled["source"] == pair.source]
        assert sorted(rows["control"]) == sorted(CONTROLS)
        assert rows["n_seeds"].tolist() == [5, 5, 5]
        (verdict,) = set(rows["verdict"])
        if pair in HELPFUL:
            assert verdict == BEATS
            assert (rows["q"] <= 0.05).all()
            assert (rows["low"] > 0).all()
        else:
            assert verdict in (CANNOT_TELL, HURTS)


def one_stage(world: Path) -> tuple[dict[str, Any], Path]:
    """Return a study of one stage, and the folder of its results in the finished world."""
    (record,) = (world / "results/stages/baseline/DailyDialog/tiny-bert/DAC").glob("seed1-*")
    tasks = {"DailyDialog": {"tasks": ["dialogue_act_classification"]}}
    return {**EVERY_TASK, "study": "one stage", "datasets": tasks, "seeds": [1]}, record


def prepared_copy(world: Path, folder: Path) -> None:
    """Copy the world's data and models, but not its trainings."""
    for part in ("data", "models"):
        shutil.copytree(world / "results" / part, folder / "results" / part, symlinks=True)


def test_trained_again_elsewhere_the_record_is_the_same(world: Path, tmp_path: Path) -> None:
    study, finished = one_stage(world)
    prepared_copy(world, tmp_path)
    run(tmp_path, study, "trainings")
    again = tmp_path / finished.relative_to(world)
    ours, theirs = read_record(again / "metrics.json"), read_record(finished / "metrics.json")
    assert select_comparable_parts(ours) == select_comparable_parts(theirs)
    for name in ("rows.parquet", "checkpoint/model.safetensors"):
        assert (again / name).read_bytes() == (finished / name).read_bytes()


def test_killed_in_mid_training_nothing_is_half_written_and_a_new_start_completes_it(
    world: Path, tmp_path: Path
) -> None:
    study, finished = one_stage(world)
    prepared_copy(world, tmp_path)
    again = tmp_path / finished.relative_to(world)
    write(tmp_path, study)
    process = subprocess.Popen(
        [sys.executable, "-m", *snakemake_words("trainings")],
        cwd=tmp_path,
        env={**ENVIRONMENT, "TASKTRANSFER_RESUME_SECONDS": "0"},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    log = again / "train.log"
    deadline = time.time() + 120
    while time.time() < deadline and not (log.exists() and "round 2:" in log.read_text()):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)  # Snakemake and the training with it
    process.wait(30)
    assert "round 2:" in log.read_text()
    assert not (again / "metrics.json").exists()
    assert not (again / "rows.parquet").exists()
    run(tmp_path, study, "--unlock")
    run(tmp_path, study, "trainings")
    ours, theirs = read_record(again / "metrics.json"), read_record(finished / "metrics.json")
    assert any("interrupted and resumed" in note for note in ours["provenance"]["notes"])
    assert select_comparable_parts(ours) == select_comparable_parts(theirs)
    left = {path.name for path in again.rglob("*") if path.name.startswith(".")}
    # Snakemake's files in every folder it creates, and the lock with the training process.
    assert left <= {".snakemake_timestamp", ".claim"}
