"""Damaged records and predictions are noticed before anything is submitted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from challenge_records import finish_all, make_study, refresh_digest

from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.challenge.submit import Wish, make
from tasktransfer.errors import RecordError
from tasktransfer.results.study import Study

TASKS = list(DATASETS["Friends"].tasks)
QA, RE = "question_answering", "relation_extraction"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[Study, dict[str, Path]]]:
    """A study to damage, and the folders of its transfer runs by target."""
    pairs = [{"source": RE if task == QA else QA, "target": task} for task in TASKS]
    datasets = {"Friends": {"tasks": "all", "pairs": pairs}}
    study = make_study(tmp_path, datasets=datasets, algorithms=["multitask"], seeds=1)
    finish_all(study, lambda run: 50.0)
    folders = {r.target: Path(study.folder(r.scored)) for r in study.plan.runs if r.sources}
    yield study, folders


def test_damaged_records_are_all_named(own: tuple[Study, dict[str, Path]]) -> None:
    study, folders = own
    (folders[QA] / "metrics.json").write_text("{")
    text = (folders[RE] / "metrics.json").read_text()
    (folders[RE] / "metrics.json").write_text(text.replace('"dev_score": 50.0', '"dev_score": "x"'))
    with pytest.raises(RecordError) as caught:
        make(study, Wish("Friends", "tiny-bert"))
    told = str(caught.value)
    assert told.startswith("2 records cannot be used")
    assert f"{folders[QA]}/metrics.json: not valid JSON" in told
    assert f"{folders[RE]}/metrics.json: dev_score" in told


def test_damaged_predictions_are_all_named(own: tuple[Study, dict[str, Path]]) -> None:
    study, folders = own
    cut = folders[QA] / "predictions.parquet"
    cut.write_bytes(cut.read_bytes()[:-20])
    (folders[RE] / "predictions.parquet").unlink()
    other = folders["reading_comprehension"] / "predictions.parquet"
    table = pq.read_table(other)
    pq.write_table(table.slice(0, 3), other)
    with pytest.raises(RecordError) as caught:
        make(study, Wish("Friends", "tiny-bert"))
    told = str(caught.value)
    assert told.startswith("the predictions of 3 tasks cannot be used")
    for target in (QA, RE, "reading_comprehension"):
        assert str(folders[target] / "predictions.parquet") in told
    assert "3 rows, the record says 4" in told
    assert not Path(study.config.results, "submissions").exists(), "nothing is written then"


def test_predictions_with_fewer_traits_than_the_task_has(
    own: tuple[Study, dict[str, Path]],
) -> None:
    study, folders = own
    path = folders["personality_detection"] / "predictions.parquet"
    table = pq.read_table(path)
    at = table.schema.get_field_index("prediction")
    answers = pa.array([["1", "0"]] * table.num_rows, pa.list_(pa.string()))
    pq.write_table(table.set_column(at, table.schema.field(at), answers), path)
    refresh_digest(path)
    with pytest.raises(RecordError, match=r"instance d1_i0: 2 answers .* expected 5"):
        make(study, Wish("Friends", "tiny-bert"))


def test_baseline_and_transfer_answer_the_same_instances(
    own: tuple[Study, dict[str, Path]],
) -> None:
    study, folders = own
    path = folders[QA] / "predictions.parquet"
    table = pq.read_table(path)
    at = table.schema.get_field_index("instance_id")
    names = pa.array(["d1_i0", "d9_i9", "d1_i1", "d2_i0"])
    pq.write_table(table.set_column(at, table.schema.field(at), names), path)
    refresh_digest(path)
    with pytest.raises(RecordError, match=r"answer different instances \(row 2: d1_i1, d9_i9\)"):
        make(study, Wish("Friends", "tiny-bert"))


def test_another_stages_record_is_noticed(own: tuple[Study, dict[str, Path]]) -> None:
    study, folders = own
    text = (folders[RE] / "metrics.json").read_text()
    (folders[QA] / "metrics.json").write_text(text)
    with pytest.raises(RecordError, match=r"it is the record of stage .* belongs here"):
        make(study, Wish("Friends", "tiny-bert"))
