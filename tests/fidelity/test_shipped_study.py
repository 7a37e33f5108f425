"""The shipped study: its records are what its preset plans today, and hold no text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tasktransfer.datasets import get_task
from tasktransfer.designs import load_config, open_study
from tasktransfer.designs.transfer.collect.planned import plan_file
from tasktransfer.operate.merge import merge_results
from tasktransfer.operate.pack import Pack, read_pack, unpacked
from tasktransfer.results.study import Study

ROOT = Path(__file__).parents[2]
PRESET = ROOT / "workflow" / "presets" / "minilm-study.yaml"


@pytest.fixture(scope="module")
def pack() -> Pack:
    return read_pack(ROOT / "shipped" / "minilm-study.parquet")


@pytest.fixture(scope="module")
def study(pack: Pack, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The preset's, merged, where neither its data nor its model are."""
    results = tmp_path_factory.mktemp("shipped") / "results"
    release, model = str(results / "no release"), load_config(PRESET).models[0]
    elsewhere = {**model.model_dump(mode="json"), "checkpoint": str(results / "no model")}
    there = {"results": str(results), "data": {"release": release}, "models": [elsewhere]}
    with unpacked(pack, load_config(PRESET, there)) as folder:
        opened = open_study(PRESET, there, need_inputs=False)
        assert merge_results(opened, folder)["counts"]["refused"] == 0
    return opened


def test_the_records_are_those_that_the_preset_plans_today(pack: Pack, study: Study) -> None:
    planned = {stage.digest for stage in study.plan.stages}
    assert set(pack.table["digest"].to_pylist()) == planned


def test_its_inputs_are_those_at_hand(pack: Pack, shared: Path) -> None:
    """Else the preset would plan other trainings where the data are."""
    study = open_study(PRESET, {"data": {"release": str(shared / "feta")}}, need_inputs=False)
    assert pack.facts["data"] == study.revisions.data


def test_answers_are_labels_and_nothing_else_is_text(pack: Pack) -> None:
    for row in pack.table.to_pylist():
        stage = json.loads(row["record"])["stage"]
        for told in row["predictions"]:
            labels = get_task(stage["dataset"], told["task"]).labels
            assert {*told["prediction"], *told["gold"]} <= set(labels)
            assert len(told["instance_id"]) < 60 and " " not in told["instance_id"]


def test_sources_and_licences_travel_with_it(pack: Pack) -> None:
    assert pack.facts["provenance"] == (ROOT / "shipped" / "PROVENANCE.md").read_text()


def test_its_cuts_are_in_the_plan_that_tables_are_collected_by(study: Study) -> None:
    assert plan_file(study, study.plan)["cuts"] == "limit_train 900, limit_test 1200"
