"""A design from outside the package: its tables by Snakemake, and its nodes by commands.

Its nodes are computed in this process. Only a slow test has Snakemake compute them, because each of
its jobs imports torch.
"""

from __future__ import annotations

import json
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
import yaml
from calls import ROOT, snakemake

from empathetic_study import make
from tasktransfer.designs import open_study
from tasktransfer.results.common_frames import RESOURCES, build_common_columns
from tasktransfer.results.records import read_record
from tasktransfer.results.rows import read_record_rows
from tasktransfer.results.store import read_frame
from toy_design import ABOUT

STUDY: dict[str, Any] = {
    "study": "toy",
    "design": "toy",
    "plugins": [str(ROOT / "tests" / "toy_design.py")],
    "data": {"tiny_world": {"dialogues": 120}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny", "max_length": 64}],
    "training": {"learning_rate": 2e-3, "batch_size": 16, "epochs": 2},
    "seeds": 1,
    "part": 7,
}


def list_records(folder: Path) -> dict[Path, int]:
    """Return path of a record → time of its last change."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("results/*/**/metrics.json")}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY))
    with chdir(folder):
        opened = open_study("study.yaml")
        make(opened)
        for stage in opened.plan.stages:  # as Snakemake leaves them
            shutil.rmtree(Path(opened.get_node_folder(stage), "checkpoint"))
    before = list_records(folder)
    snakemake(folder, "all")
    assert len(before) == 8 and list_records(folder) == before
    return folder


@pytest.mark.slow
def test_snakemake_computes_every_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text(yaml.safe_dump(STUDY))
    snakemake(tmp_path, "all")
    opened = open_study("study.yaml")
    for node in opened.plan.nodes:
        assert read_record(Path(opened.get_record_path(node)))["node"]["digest"] == node.digest
    assert Path("results/figures/spearman.png").exists()
    assert Path("results/report.html").exists()


def test_every_node_left_its_record(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(study)
    opened = open_study("study.yaml")
    plan = opened.plan
    assert [len(nodes) for nodes in (plan.stages, plan.fits, plan.derived)] == [2, 1, 1]
    assert len(plan.evaluations) == 4
    for stage in plan.stages:
        trained = read_record(Path(opened.get_record_path(stage)))
        assert trained["node"]["digest"] == stage.digest
        assert trained["provenance"]["substitutes"] == {"a large model": "a toy"}
    for evaluation in plan.evaluations:
        file = Path(opened.get_record_path(evaluation))
        record, rows = read_record(file), read_record_rows(file)
        assert record["provenance"]["substitutes"] == {"a large model": "a toy"}
        result = record["results"][evaluation.task]
        assert rows.num_rows == result["instances"] > 0
        assert -1 <= result["measures"]["spearman"] <= 1
        gaps = pc.abs(pc.subtract(rows["predicted_value"], rows["gold_value"]))
        assert result["measures"]["mean_gap"] == pytest.approx(pc.mean(gaps).as_py())


def test_its_table_and_figure_are_there(study: Path) -> None:
    columns = build_common_columns(ABOUT)["scores"]
    frame, metadata = read_frame(study / "results/tables/scores.parquet", columns)
    measured = frame[frame["measure"] == "spearman"]
    # Each method on the whole test split and on a part of it.
    assert list(measured["method"]) == ["frozen", "frozen", "fit", "fit"]
    assert set(measured["split"]) == {"test"} and measured["value"].between(-1, 1).all()
    costs, _ = read_frame(study / "results/tables/resources.parquet", RESOURCES)
    assert costs["kind"].value_counts().to_dict() == {
        "evaluation": 4,
        "stage": 2,
        "fit": 1,
        "data": 1,
    }
    assert metadata.synthetic and metadata.study == "toy"
    assert (study / "results/figures/spearman.png").stat().st_size > 1000


def test_nothing_is_done_twice(study: Path) -> None:
    assert "Nothing to be done" in snakemake(study, "all")


@pytest.mark.slow
def test_a_damaged_evaluation_is_made_again(study: Path) -> None:
    record = next((study / "results/evaluations").rglob("metrics.json"))
    whole = json.loads(record.read_text())
    record.write_text(record.read_text()[:100])
    assert "evaluate" in snakemake(study, "all")
    again = json.loads(record.read_text())
    assert again["results"] == whole["results"]
    assert record.with_name("metrics.json.damaged-1").exists()


def test_a_limit_keeps_each_prediction_with_its_instance(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(study)
    opened = open_study("study.yaml")
    for run in opened.plan.runs:
        rows, few = (
            {
                row["instance_id"]: row
                for row in read_record_rows(Path(opened.get_record_path(node))).to_pylist()
            }
            for node in run.evaluations
        )
        assert len(few) == STUDY["part"] < len(rows)
        for name, row in few.items():
            value = pytest.approx(rows[name]["predicted_value"], abs=1e-5)
            # Its place among the rows is another, since there are fewer.
            assert row == rows[name] | {"predicted_value": value, "index": row["index"]}
