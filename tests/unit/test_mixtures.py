"""Records that do not belong together are refused, both of them named."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from damaged_study import (
    KEYS,
    RESULTS,
    TASKS,
    a_run,
    asked,
    edited,
    gather,
    opened,
    plan_by_hand,
    written_study,
)

from study_records import write_records, write_stage
from tasktransfer.core.nodes import Start
from tasktransfer.core.versions import RECIPE_VERSION
from tasktransfer.designs.transfer.collect.planned import Expected, StudyPlan
from tasktransfer.errors import RecordError
from tasktransfer.results.study import Study


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_study(tmp_path_factory.mktemp("study"))


@pytest.fixture
def study(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A copy of the finished study, in the working directory."""
    shutil.copytree(finished, tmp_path / "study")
    monkeypatch.chdir(tmp_path / "study")
    return opened()


def _one_seed_otherwise(study: Study, **keys: Any) -> Study:
    """Seed 1 of one run comes from another config."""
    other = opened(**keys)
    shutil.rmtree(study.folder(a_run(study).stages[-1]))
    write_stage(other, a_run(other).stages[-1])
    return other


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"training": {"learning_rate": 1e-4}}, "training.learning_rate of DailyDialog tiny-bert"),
        ({"training": {"epochs": 3}}, "training.epochs of DailyDialog tiny-bert"),
        ({"models": [KEYS["models"][0] | {"max_length": 64}]}, "model.max_length of tiny-bert"),
        ({"models": [KEYS["models"][0] | {"checkpoint": "a/b"}]}, "model.weights of tiny-bert"),
        ({"data": {"few_sample": False}}, "few_sample of DailyDialog is True"),
        ({"data": {"tiny_world": {"seed": 5}}}, "data_revision of DailyDialog"),
    ],
)
def test_one_seed_of_another_kind_is_refused(study: Study, keys: dict[str, Any], said: str) -> None:
    """Though a plan written by hand asks for it."""
    other = _one_seed_otherwise(study, **keys)
    plan = plan_by_hand(study)
    entry = next(run for run in plan.runs if not Path(RESULTS, run.record).exists())
    changed = replace(entry, record=f"{a_run(other).stages[-1].path}/metrics.json")
    with pytest.raises(RecordError) as refusal:
        asked(with_run(plan, entry, changed))
    assert said in str(refusal.value)
    assert str(refusal.value).count("metrics.json") == 2


def test_the_plan_of_a_study_never_asks_for_it(study: Study) -> None:
    _one_seed_otherwise(study, training={"learning_rate": 1e-4})
    tables = gather(study)
    assert len(tables.missing) == 2, "both that end with this training"
    assert tables.problems.empty


def test_a_run_that_started_from_other_hyperparameters_is_refused(study: Study) -> None:
    """A parent that no run ends with, from another config, in a plan written by hand."""
    several = {
        "mode": "named",
        "named": [{"dataset": "DailyDialog", "target": TASKS[0], "sources": TASKS[1:]}],
        "algorithms": ["pretrain_finetune"],
    }
    write_records(mine := opened(multi_source=several))
    pretrained = next(
        s for s in mine.plan.stages if any(len(one.tasks) == 2 for one in s.selections)
    )
    child = next(
        stage
        for stage in mine.plan.stages
        if pretrained.digest in [one.digest for one in stage.parents]
        and stage.select_on == (TASKS[0],)
    )
    other = replace(pretrained, training=replace(pretrained.training, epochs=3))
    other_child = replace(child, starts=(Start(other),))
    for stage in (other, other_child):
        write_stage(mine, stage)
    plan = plan_by_hand(mine)
    (entry,) = (run for run in plan.runs if run.record == f"{child.path}/metrics.json")
    stages = (other.path, other_child.path)
    changed = replace(entry, record=f"{other_child.path}/metrics.json", stages=stages)
    with pytest.raises(RecordError, match=r"training\.epochs of DailyDialog tiny-bert"):
        asked(with_run(plan, entry, changed))


def with_run(plan: StudyPlan, old: Expected, new: Expected) -> StudyPlan:
    """The plan with a run in another's place."""
    return replace(plan, runs=tuple(new if run is old else run for run in plan.runs))


def test_synthetic_and_real_records_are_refused(study: Study) -> None:
    edited(synthetic=False)(Path(study.record(a_run(study).stages[-1])))
    with pytest.raises(RecordError, match="synthetic of DailyDialog is"):
        gather(study)


def test_what_ran_in_another_precision_is_refused(study: Study) -> None:
    """``auto`` became another one on another machine: nothing of the plan shows it."""
    record = Path(study.record(a_run(study).stages[-1]))
    provenance = json.loads(record.read_text())["provenance"]
    host = provenance["host"] | {"precision": "bfloat16"}
    edited(provenance=provenance | {"host": host})(record)
    with pytest.raises(RecordError) as refusal:
        gather(study)
    said = str(refusal.value)
    assert "provenance.host.precision of DailyDialog tiny-bert is 'float32'" in said
    assert said.count("metrics.json") == 2
    assert "name the precision in the config" in said


def test_another_recipe_is_refused(study: Study) -> None:
    record = Path(study.record(a_run(study).stages[-1]))
    provenance = json.loads(record.read_text())["provenance"]
    edited(provenance=provenance | {"recipe": RECIPE_VERSION + 1})(record)
    # The identity that the digest is of still says 1: the record contradicts itself.
    tables = gather(study)
    assert f"provenance.recipe: {RECIPE_VERSION + 1}, but" in tables.problems["error"][0]
