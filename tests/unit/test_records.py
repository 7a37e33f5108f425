from __future__ import annotations

import ast
import copy
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest
from record_factory import Run, as_schema_1, make_record

from constructed_records import make_provenance
from tasktransfer.errors import RecordError
from tasktransfer.files import replacing
from tasktransfer.results.predictions import Prediction, read_predictions, write_predictions
from tasktransfer.results.records import (
    Record,
    best_round,
    comparable,
    read_record,
    record_schema,
    write_record,
)

ROOT = Path(__file__).resolve().parents[2]
TARGET = "emotion_recognition"
TRANSFER = ("DailyDialog", "bert", "multitask", ("dialogue_nli",), TARGET, 3)
FINETUNED = ("DailyDialog", "bert", "pretrain_finetune", ("dialogue_nli",), TARGET, 3)


@pytest.fixture
def record() -> Record:
    return make_record(TRANSFER, 61.25)


def put(record: Any, key: str, value: Any) -> Any:
    """A copy with the value at a dotted key; the value ``...`` removes the key."""
    changed = copy.deepcopy(record)
    *path, last = [int(part) if part.isdigit() else part for part in key.split(".")]
    place = changed
    for part in path:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return changed


def test_what_is_written_is_read_back(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "deep" / "metrics.json"
    write_record(path, record)
    assert read_record(path) == record
    assert [file.name for file in path.parent.iterdir()] == ["metrics.json"]


def test_a_stage_that_is_not_tested_has_no_results(tmp_path: Path, record: Record) -> None:
    bare: Any = record | {"test": {}}
    write_record(tmp_path / "m.json", bare)
    assert read_record(tmp_path / "m.json") == bare


def test_rounds_may_begin_with_the_untrained_model_and_scores_lie_below_0(
    tmp_path: Path, record: Record
) -> None:
    untrained = put(record["rounds"][0], "round", 0) | {"selection_score": -4.5}
    changed: Any = record | {"rounds": [untrained, *record["rounds"]]}
    changed["dev_score"] = changed["rounds"][2]["selection_score"]
    write_record(tmp_path / "m.json", changed)
    chosen = put(put(changed, "best_round", 0), "dev_score", -4.5)
    write_record(tmp_path / "m.json", chosen)
    assert best_round(read_record(tmp_path / "m.json")) == untrained


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("dev_score", float("nan"), "dev_score: found nan"),
        ("rounds.1.train_loss.dialogue_nli", float("inf"), "rounds[1].train_loss.dialogue_nli"),
        ("stage.identity.lr", float("-inf"), "stage.identity.lr: found -inf"),
        ("provenance.seconds.train", -1.0, "provenance.seconds.train: found -1.0"),
        (
            "provenance.host.device",
            "tpu",
            "provenance.host.device: found 'tpu', expected 'cpu', 'cuda' or 'mps'",
        ),
        ("provenance.started", "yesterday", "provenance.started: found 'yesterday'"),
        ("stage.seed", True, "stage.seed: found true, expected a whole number"),
        ("stage.parents", ["abc"], "stage.parents[0]: found 'abc'"),
        ("stage.kind", ..., "stage.kind: is missing"),
        ("extra", 1, "extra: unknown key"),
        ("run", None, "run: unknown key"),
        ("schema", 3, "schema: found 3"),
        ("best_round", 3, "best_round: 3, but the rounds are 1 to 2"),
        ("best_round", 1, "dev_score: 61.25, but the best round's is 30.625"),
        ("rounds.0.round", 2, "rounds: must be numbered"),
        ("rounds", [], "rounds: must be numbered"),
        ("rounds.0.dev.emotion_recognition.accuracy", 130.0, "rounds[0].dev.emotion_recognition"),
        (f"test.{TARGET}.metrics.accuracy", 130.0, "test.emotion_recognition.metrics"),
        (f"test.{TARGET}.score", None, "test.emotion_recognition.score: found null"),
        ("stage.identity.seed", 4, "stage.digest"),
        ("few_sample", False, "few_sample: False, but stage.identity.few_sample is True"),
        ("sizes", {}, "sizes: no sizes of"),
        (
            "predictions",
            {"file": "p.parquet", "rows": 3, "sha256": "0" * 64},
            "predictions.rows: 3, but test has 4 instances",
        ),
    ],
)
def test_a_wrong_record_is_refused_by_name_on_both_sides(
    tmp_path: Path, record: Record, key: str, value: Any, said: str
) -> None:
    path = tmp_path / "metrics.json"
    wrong = put(record, key, value)
    with pytest.raises(RecordError) as refusal:
        write_record(path, wrong)
    assert said in str(refusal.value)
    assert str(path) in str(refusal.value)
    assert list(tmp_path.iterdir()) == []

    path.write_text(json.dumps(wrong))
    with pytest.raises(RecordError) as refusal:
        read_record(path)
    assert said in str(refusal.value)


@pytest.mark.parametrize("run", [TRANSFER, FINETUNED])
def test_records_of_schema_1_are_read_as_schema_2(tmp_path: Path, run: Run) -> None:
    record = make_record(run, 61.25)
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps(as_schema_1(record, run)))
    assert read_record(path) == record


def test_a_schema_1_record_of_a_stage_without_a_run_is_read(tmp_path: Path, record: Record) -> None:
    bare: Any = record | {"test": {}}
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps(as_schema_1(bare, None)))
    assert read_record(path) == bare


def test_nothing_is_written_as_schema_1(tmp_path: Path, record: Record) -> None:
    old: Any = as_schema_1(record, TRANSFER)
    with pytest.raises(RecordError, match="schema: found 1"):
        write_record(tmp_path / "metrics.json", old)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("run", ..., "run: missing"),
        ("score", ..., "score: missing"),
        ("epochs", ..., "epochs: missing"),
        ("best_epoch", ..., "best_epoch: missing"),
        ("score", float("nan"), "score: nan, but test.emotion_recognition.score is 61.25"),
        ("score", 60.0, "score: 60.0, but test.emotion_recognition.score is 61.25"),
        ("score", None, "score: None"),
        ("run", None, "run: null, but the record has a score"),
        ("run", 3, "run: found int"),
        ("run.seed", 4, "run.seed: 4, but stage.seed is 3"),
        ("run.target", "dialogue_nli", "test: no result of the target dialogue_nli"),
        ("test", {}, "test: no result of the target emotion_recognition"),
        ("epochs", 3, "rounds: found 3"),
        ("epochs.0.epoch", 2, "rounds: must be numbered"),
        ("epochs.0.epoch", ..., "rounds[0].round: is missing"),
        ("epochs.0.seconds", -1, "rounds[0].seconds: found -1"),
        ("best_epoch", 3, "best_round: 3, but the rounds are 1 to 2"),
        ("best_epoch", 1, "dev_score: 61.25, but the best round's is 30.625"),
        ("stage.parent", "abc", "stage.parents[0]: found 'abc'"),
        ("stage.kind", ..., "stage.kind: is missing"),
        ("stage", 3, "stage: found 3"),
        ("extra", 1, "extra: unknown key"),
        ("rounds", [], "rounds: unknown key"),
        ("stage.parent", ..., "stage.parent: missing"),
        ("stage.parents", [], "stage.parents: unknown key"),
        ("schema", True, "schema: found True"),
    ],
)
def test_a_wrong_record_of_schema_1_is_refused_by_name(
    tmp_path: Path, record: Record, key: str, value: Any, said: str
) -> None:
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps(put(as_schema_1(record, TRANSFER), key, value)))
    with pytest.raises(RecordError) as refusal:
        read_record(path)
    assert said in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_every_cut_of_a_record_is_refused(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "metrics.json"
    write_record(path, record)
    whole = path.read_bytes()
    for length in range(0, len(whole) - 2, 97):
        path.write_bytes(whole[:length])
        with pytest.raises(RecordError, match="not valid JSON"):
            read_record(path)


@pytest.mark.parametrize("text", ["[]", "null", "3", '{"a": 1}', "\xff\xfe", "[" * 100000])
def test_foreign_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "metrics.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(RecordError, match=r"metrics\.json"):
        read_record(path)


def test_an_absent_record_is_a_record_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="cannot be read"):
        read_record(tmp_path / "metrics.json")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(ValueError, match="stop"), replacing(path) as part:
        part.write_text("half")
        raise ValueError("stop")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_comparable_leaves_out_provenance_and_times_only(record: Record) -> None:
    again = put(record, "provenance", make_provenance(commit=None, tokens_per_second=1.0))
    again = put(again, "rounds.0.seconds", 9.0)
    assert comparable(again) == comparable(record)
    assert comparable(put(record, "dev_score", 61.0)) != comparable(record)
    assert comparable(put(record, "rounds.0.train_loss.dialogue_nli", 2.0)) != comparable(record)


def test_the_schema_agrees_with_the_checks(record: Record) -> None:
    schema = record_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(record)
    for key, value in [
        ("schema", 1),
        ("extra", 1),
        ("dev_score", "x"),
        ("stage.kind", ...),
        ("stage.parents", ["abc"]),
        ("provenance.host.device", "tpu"),
        ("rounds.0.seconds", -1),
    ]:
        assert not validator.is_valid(put(record, key, value)), key


def test_the_schema_file_is_fresh() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "tasktransfer.results.records"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    file = ROOT / "workflow" / "schemas" / "run-record.schema.json"
    assert file.read_text() == printed, (
        f"{file} is stale: python -m tasktransfer.results.records > {file.relative_to(ROOT)}"
    )


def test_reading_records_needs_pydantic_only() -> None:
    code = (
        "import sys; before = set(sys.modules); import tasktransfer.results.records; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(new - set(sys.stdlib_module_names) - {'tasktransfer'}))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    needs = {
        "annotated_types",
        "pydantic",
        "pydantic_core",
        "typing_extensions",
        "typing_inspection",
    }
    assert {name for name in ast.literal_eval(printed) if name[0] != "_"} <= needs


def rows(n: int = 3) -> list[Prediction]:
    return [Prediction(i, "dialogue_nli", f"d-{i % 2}", ("a", "b"), ("a",), 50.0) for i in range(n)]


def write(path: Path, kept: list[Prediction]) -> Any:
    return write_predictions(path, kept, digest="0" * 64, dataset="DailyDialog")


def test_predictions_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "predictions.parquet"
    file = write(path, rows())
    table = read_predictions(path, file)
    assert file["rows"] == 3
    assert table["prediction"].to_pylist() == [["a", "b"]] * 3
    assert table["instance_id"].to_pylist() == ["d-0", "d-1", "d-0"]
    assert table.schema.metadata[b"dataset"] == b"DailyDialog"
    assert write(path, rows())["sha256"] == file["sha256"]


def test_predictions_keep_their_dialogues(tmp_path: Path) -> None:
    path = tmp_path / "predictions.parquet"
    file = write(path, [replace(row, dialogue_id=f"d{row.index // 2}") for row in rows()])
    assert read_predictions(path, file)["dialogue_id"].to_pylist() == ["d0", "d0", "d1"]


def test_predictions_of_schema_1_have_no_dialogues(tmp_path: Path) -> None:
    path = tmp_path / "predictions.parquet"
    write(path, rows())
    table = read_predictions(path)
    older = table.drop_columns(["dialogue_id"])
    pq.write_table(older.replace_schema_metadata({**table.schema.metadata, b"schema": b"1"}), path)
    again = read_predictions(path)
    assert again["dialogue_id"].to_pylist() == [None] * 3
    assert again.equals(table)
    # Neither may pass for the other.
    pq.write_table(older.replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(RecordError, match=r"not predictions of schema 2.*footer schema b'2'"):
        read_predictions(path)


def test_damaged_predictions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "predictions.parquet"
    file = write(path, rows())
    with pytest.raises(RecordError, match="3 rows, the record says 4"):
        read_predictions(path, {**file, "rows": 4})
    with pytest.raises(RecordError, match="SHA-256"):
        read_predictions(path, {**file, "sha256": "0" * 64})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RecordError, match="cannot be read as Parquet"):
        read_predictions(path)
    with pytest.raises(RecordError, match="cannot be read: no such file"):
        read_predictions(tmp_path / "absent.parquet")


@pytest.mark.parametrize("order", [[0, 2], [0, 0, 1], [1, 0]])
def test_predictions_must_cover_the_split_in_order(tmp_path: Path, order: list[int]) -> None:
    kept = rows()
    with pytest.raises(RecordError, match="rows are missing, repeated or out of order"):
        write(tmp_path / "p.parquet", [kept[i] for i in order])
    assert list(tmp_path.iterdir()) == []


def test_a_nan_instance_score_is_refused(tmp_path: Path) -> None:
    wrong = Prediction(0, "dialogue_nli", "d", ("a",), ("a",), float("nan"))
    with pytest.raises(RecordError, match="score nan"):
        write(tmp_path / "p.parquet", [wrong])
