"""All damaged records and predictions are reported, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from challenge_records import finish_all, make_study, with_column

from tasktransfer.datasets import DATASETS
from tasktransfer.designs.challenge.submit import SubmissionOptions as Options
from tasktransfer.designs.challenge.submit import write_submission
from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.errors import RecordError
from tasktransfer.results.study import Study

TASKS = list(DATASETS["Friends"].tasks)
QA, RE = "question_answering", "relation_extraction"
OTHER = "reading_comprehension"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[Study, dict[str, Path]]]:
    """Return a study to damage, and the folders of its transfer runs by target."""
    pairs = [{"source": RE if task == QA else QA, "target": task} for task in TASKS]
    datasets = {"Friends": {"tasks": "all", "pairs": pairs}}
    study = make_study(tmp_path, datasets=datasets, algorithms=["multitask"], seeds=1)
    finish_all(study, lambda run: 50.0)
    folders = {
        r.about["target"]: Path(study.get_node_folder(r.stages[-1]))
        for r in select_transfer_runs(study.plan)
        if r.about["sources"]
    }
    yield study, folders


def test_damaged_records_are_all_named(own: tuple[Study, dict[str, Path]]) -> None:
    study, folders = own
    (folders[QA] / "metrics.json").write_text("{")
    text = (folders[OTHER] / "metrics.json").read_text()
    damaged = text.replace('"dev_score": 50.0', '"dev_score": "x"')
    (folders[OTHER] / "metrics.json").write_text(damaged)
    with pytest.raises(RecordError) as caught:
        write_submission(study, Options("Friends", "tiny-bert"))
    told = str(caught.value)
    assert told.startswith("2 records cannot be used")
    assert f"{folders[QA]}/metrics.json: The record is not valid JSON" in told
    assert f"{folders[OTHER]}/metrics.json: training.selections[0].dev_score" in told


def test_damaged_predictions_are_all_named(own: tuple[Study, dict[str, Path]]) -> None:
    study, folders = own
    cut = folders[QA] / "rows.parquet"
    cut.write_bytes(cut.read_bytes()[:-20])
    (folders[RE] / "rows.parquet").unlink()
    other = folders["reading_comprehension"] / "rows.parquet"
    table = pq.read_table(other)
    pq.write_table(table.slice(0, 3), other)
    with pytest.raises(RecordError) as caught:
        write_submission(study, Options("Friends", "tiny-bert"))
    told = str(caught.value)
    assert told.startswith("The predictions of 3 tasks cannot be used")
    for target in (QA, RE, OTHER):
        assert str(folders[target] / "rows.parquet") in told
    assert "The table has 3 rows, but its record says 4" in told
    assert not Path(study.config.results, "submissions").exists(), "nothing is written then"


@pytest.mark.parametrize(
    ("target", "column", "values", "told"),
    [
        (
            "personality_detection",
            "prediction",
            pa.array([["1", "0"]] * 4, pa.list_(pa.string())),
            r"Instance d1_i0 .* has 2 answers .* must have 5",
        ),
        (
            QA,
            "instance_id",
            pa.array(["d1_i0", "d9_i9", "d1_i1", "d2_i0"]),
            r"instances differ from the instances in the file .* \(row 2: d1_i1, d9_i9\)",
        ),
    ],
    ids=["fewer traits than the task has", "baseline and transfer of different instances"],
)
def test_predictions_that_do_not_fit(
    own: tuple[Study, dict[str, Path]], target: str, column: str, values: pa.Array, told: str
) -> None:
    study, folders = own
    with_column(folders[target] / "rows.parquet", column, values)
    with pytest.raises(RecordError, match=told):
        write_submission(study, Options("Friends", "tiny-bert"))


def test_another_stages_record_is_noticed(own: tuple[Study, dict[str, Path]]) -> None:
    study, folders = own
    text = (folders[OTHER] / "metrics.json").read_text()
    (folders[QA] / "metrics.json").write_text(text)
    with pytest.raises(RecordError, match=r"belongs to stage .*, but it must belong to"):
        write_submission(study, Options("Friends", "tiny-bert"))
