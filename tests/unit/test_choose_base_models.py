"""Selection of transfers that are repeated, with larger models or with controls.

It uses dev scores of the first seed and ignores test scores.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from benchmarks import choose_best_cells
from benchmarks.choose_base_models import format_preset, select_best_and_worst, select_learnt_tasks
from tasktransfer.designs import load_config

TASKS = [
    "emotion_recognition", "dialogue_act_classification", "topic_classification", "dialogue_nli",
    "adversarial_response_selection",
]  # fmt: skip


def a_run(algorithm: str, source: str, target: str, seed: int, dev: float) -> dict[str, object]:
    return {
        "dataset": "DailyDialog", "algorithm": algorithm, "source": source, "target": target,
        "seed": seed, "dev_score": dev, "score": -dev,
    }  # fmt: skip


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Write tables whose dev scores rank the sources.

    A target's baseline has ten times its number, a transfer that of its source more. Seed 1 and all
    test scores say the contrary.
    """
    rows = []
    for seed, sign in ((0, 1), (1, -1)):
        for t, target in enumerate(TASKS):
            rows.append(a_run("baseline", "", target, seed, sign * 10.0 * t))
            for s, source in enumerate(TASKS):
                if source != target:
                    for algorithm in ("pretrain_finetune", "multitask_finetune"):
                        rows.append(a_run(algorithm, source, target, seed, sign * (10.0 * t + s)))
    pd.DataFrame(rows).to_parquet(tmp_path / "runs.parquet")
    prior = {"dataset": "DailyDialog", "reference": "most_frequent", "score": 1.0}
    pd.DataFrame([{**prior, "target": task} for task in TASKS]).to_parquet(
        tmp_path / "reference.parquet"
    )
    return tmp_path


def test_the_best_and_the_worst_sources_are_named(tables: Path) -> None:
    runs = pd.read_parquet(tables / "runs.parquet")
    first = runs[runs["seed"] == 0]
    assert select_best_and_worst(first, TASKS[2], 1) == [(TASKS[4], "best"), (TASKS[0], "worst")]
    with pytest.raises(SystemExit, match="4 sources, but --each 3 needs 6"):
        select_best_and_worst(first, TASKS[2], 3)
    reference = pd.read_parquet(tables / "reference.parquet")
    assert select_learnt_tasks(first, reference, 2) == [TASKS[4], TASKS[3]]


def test_the_preset_is_a_study_and_no_test_score_changes_it(tables: Path) -> None:
    text = format_preset(tables, "DailyDialog", 3, 2)
    (tables / "base.yaml").write_text(text)
    pairs = yaml.safe_load(text)["datasets"]["DailyDialog"]["pairs"]
    assert [pair["target"] for pair in pairs[::4]] == TASKS[:1:-1]
    assert len(pairs) == 12
    assert load_config(tables / "base.yaml").seeds == (0,)
    runs = pd.read_parquet(tables / "runs.parquet")
    other = runs.assign(score=np.random.default_rng(0).permutation(runs["score"]))
    other.to_parquet(tables / "runs.parquet")
    assert format_preset(tables, "DailyDialog", 3, 2) == text


def test_cells_that_gain_most_on_dev_are_compared_with_controls(tables: Path) -> None:
    (tables / "controls.yaml").write_text(choose_best_cells.format_preset(tables, 2))
    config = load_config(tables / "controls.yaml")
    # The gain over a target's baseline is the number of its source.
    assert config.datasets[0].pairs == ((TASKS[4], TASKS[0]), (TASKS[4], TASKS[1]))
    assert config.controls == ("self_transfer", "longer_baseline", "shuffled_source")
