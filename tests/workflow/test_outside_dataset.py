"""A complete study of a dataset outside the package: plan, data, trainings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from calls import ROOT, call, snakemake

from outside_dataset import PURCHASE, SHOP
from outside_dataset.release import SIZES, write_release
from tasktransfer.results.records import read_record
from tasktransfer.tasks.card import SPLITS

STUDY: dict[str, Any] = {
    "study": "errands",
    "plugins": [str(ROOT / "tests" / "outside_dataset")],
    "data": {"release": "releases", "tiny_world": {"dialogues": 120}},
    "datasets": {"Errands": {"pairs": [{"source": PURCHASE.name, "target": SHOP.name}]}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny", "max_length": 64}],
    "algorithms": ["multitask"],
    "training": {"learning_rate": 2e-3, "batch_size": 16, "epochs": 1},
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("errands")
    write_release(folder / "releases")
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY))
    return folder


def test_it_is_planned_before_anything_is_there(study: Path) -> None:
    plan = call(study, "tasktransfer", "plan", "--config", "study.yaml", "--json")
    assert json.loads(plan)["estimate"]["sizes_from"] == ["the dataset's own sizes"]


@pytest.mark.slow
def test_its_study_is_run_to_the_last_training(study: Path) -> None:
    snakemake(study, "trainings")
    records = [read_record(path) for path in (study / "results/stages").rglob("metrics.json")]
    trained = sorted(tuple(record["node"]["train_tasks"]) for record in records)
    assert trained == [(PURCHASE.name,), (PURCHASE.name, SHOP.name), (SHOP.name,)]
    assert all(record["synthetic"] and len(record["results"]) == 1 for record in records)


@pytest.mark.slow
def test_its_data_is_reported(study: Path) -> None:
    table = call(study, "tasktransfer", "data", "stats", "--config", "study.yaml")
    (line,) = (line.split() for line in table.splitlines() if PURCHASE.name in line)
    assert line[-3:] == [str(SIZES[split]) for split in SPLITS]
