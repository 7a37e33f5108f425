"""A complete study of a dataset outside the package: plan, data, trainings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from outside_dataset import PURCHASE, SHOP
from outside_dataset.release import SIZES, write_release
from tasktransfer.results.records import read_record
from tasktransfer.tasks.card import SPLITS

ROOT = Path(__file__).resolve().parents[2]
STUDY: dict[str, Any] = {
    "study": "errands",
    "plugins": [str(ROOT / "tests" / "outside_dataset")],
    "data": {"release": "releases", "tiny_world": {"dialogues": 120}},
    "datasets": {"Errands": {"pairs": [{"source": PURCHASE.name, "target": SHOP.name}]}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny", "max_length": 64}],
    "algorithms": ["multitask"],
    "training": {"learning_rate": 2e-3, "batch_size": 16, "epochs": 1},
}


def call(folder: Path, *words: str) -> str:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HF_HUB_OFFLINE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    logs = "\n".join(log.read_text()[-1500:] for log in (folder / "results").rglob("*.log"))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:] + logs[-6000:]
    return done.stdout


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("errands")
    write_release(folder / "releases")
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY))
    return folder


def test_it_is_planned_before_anything_is_there(study: Path) -> None:
    plan = call(study, "tasktransfer", "plan", "--config", "study.yaml", "--json")
    assert json.loads(plan)["estimate"]["sizes_from"] == ["the dataset's own sizes"]


def test_its_study_is_run_to_the_last_training(study: Path) -> None:
    call(
        study,
        *("snakemake", "trainings", "--snakefile", str(ROOT / "Snakefile")),
        *("--workflow-profile", str(ROOT / "workflow" / "profiles" / "default"), "--cores", "2"),
        *("--max-jobs-per-timespan", "100/1s"),
        *("--configfile", "study.yaml"),
    )
    records = [read_record(path) for path in (study / "results/stages").rglob("metrics.json")]
    trained = sorted(tuple(record["node"]["train_tasks"]) for record in records)
    assert trained == [(PURCHASE.name,), (PURCHASE.name, SHOP.name), (SHOP.name,)]
    assert all(record["synthetic"] and len(record["results"]) == 1 for record in records)


def test_its_data_is_told(study: Path) -> None:
    table = call(study, "tasktransfer", "data", "stats", "--config", "study.yaml")
    (line,) = (line.split() for line in table.splitlines() if PURCHASE.name in line)
    assert line[-3:] == [str(SIZES[split]) for split in SPLITS]
