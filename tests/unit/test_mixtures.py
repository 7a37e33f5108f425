"""Records that must not be combined are refused, with both names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from damaged_study import a_run, edited, gather, opened, written_study

from study_records import write_stage
from tasktransfer.core.identity import RECIPE_VERSION
from tasktransfer.errors import RecordError
from tasktransfer.results.study import Study


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_study(tmp_path_factory.mktemp("study"))


@pytest.fixture
def study(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """Copy the finished study into the working directory."""
    shutil.copytree(finished, tmp_path / "study")
    monkeypatch.chdir(tmp_path / "study")
    return opened()


def test_the_plan_of_a_study_never_asks_for_other_hyperparameters(study: Study) -> None:
    other = opened(training={"learning_rate": 1e-4})
    shutil.rmtree(study.get_node_folder(a_run(study).stages[-1]))
    write_stage(other, a_run(other).stages[-1])
    tables = gather(study)
    assert len(tables["missing_runs"]) == 2, "both that end with this training"
    assert tables["problems"].empty


def test_synthetic_and_real_records_are_refused(study: Study) -> None:
    edited(synthetic=False)(Path(study.get_record_path(a_run(study).stages[-1])))
    with pytest.raises(RecordError, match="synthetic of DailyDialog is"):
        gather(study)


def test_what_ran_in_another_precision_is_refused(study: Study) -> None:
    """``auto`` gave another precision on another machine, which the plan does not show."""
    record = Path(study.get_record_path(a_run(study).stages[-1]))
    provenance = json.loads(record.read_text())["provenance"]
    host = provenance["host"] | {"precision": "bfloat16"}
    edited(provenance=provenance | {"host": host})(record)
    with pytest.raises(RecordError) as refusal:
        gather(study)
    said = str(refusal.value)
    assert "provenance.host.precision of DailyDialog tiny-bert, stages (auto) is 'float32'" in said
    assert said.count("metrics.json") == 2
    assert "Set the precision in the config" in said


def test_another_recipe_is_refused(study: Study) -> None:
    record = Path(study.get_record_path(a_run(study).stages[-1]))
    provenance = json.loads(record.read_text())["provenance"]
    edited(provenance=provenance | {"recipe": RECIPE_VERSION + 1})(record)
    # The identity that the digest is of still says 1: the record contradicts itself.
    tables = gather(study)
    assert (
        f"provenance.recipe: The value is {RECIPE_VERSION + 1}, but"
        in tables["problems"]["error"][0]
    )
