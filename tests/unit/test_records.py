from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest
from record_factory import make_record

from constructed_records import make_provenance, put
from tasktransfer.errors import RecordError
from tasktransfer.files import replace_file
from tasktransfer.results.records import (
    REMEDY,
    build_record_schema,
    get_selected_round,
    read_record,
    select_comparable_parts,
    write_record,
)
from tasktransfer.results.rows import Row, read_node_digest, read_rows, write_rows
from tasktransfer.results.schema import Record

ROOT = Path(__file__).resolve().parents[2]
TARGET = "emotion_recognition"
TRANSFER = ("DailyDialog", "bert", "multitask", ("dialogue_nli",), TARGET, 3)


@pytest.fixture
def record() -> Record:
    return make_record(TRANSFER, 61.25)


def test_what_is_written_is_read_back(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "deep" / "metrics.json"
    write_record(path, record)
    assert read_record(path) == record
    assert [file.name for file in path.parent.iterdir()] == ["metrics.json"]


def test_a_stage_that_is_not_tested_has_no_results(tmp_path: Path, record: Record) -> None:
    bare: Any = record | {"results": {}}
    write_record(tmp_path / "m.json", bare)
    assert read_record(tmp_path / "m.json") == bare


def test_rounds_may_begin_with_the_untrained_model_and_scores_lie_below_0(
    tmp_path: Path, record: Record
) -> None:
    rounds = record["training"]["rounds"]
    untrained = put(rounds[0], "round", 0)
    changed = put(record, "training.rounds", [untrained, *rounds])
    scores = [-4.5, *record["training"]["selections"][0]["scores"]]
    changed = put(changed, "training.selections.0.scores", scores)
    write_record(tmp_path / "m.json", changed)
    chosen = put(changed, "training.selections.0.round", 0)
    chosen = put(chosen, "training.selections.0.dev_score", -4.5)
    write_record(tmp_path / "m.json", chosen)
    assert (
        get_selected_round(read_record(tmp_path / "m.json"), [TARGET]).number == untrained["round"]
    )


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (
            "training.selections.0.dev_score",
            float("nan"),
            "selections[0].dev_score: The value is nan",
        ),
        (
            "training.rounds.1.train_loss.dialogue_nli",
            float("inf"),
            "training.rounds[1].train_loss.dialogue_nli",
        ),
        ("node.identity.lr", float("-inf"), "node.identity.lr: The value is -inf"),
        ("provenance.seconds.train", -1.0, "provenance.seconds.train: The value is -1.0"),
        (
            "provenance.host.device",
            "tpu",
            "provenance.host.device: The value is 'tpu', but it must be 'cpu', 'cuda' or 'mps'",
        ),
        ("provenance.started", "yesterday", "provenance.started: The value is 'yesterday'"),
        ("node.seed", True, "node.seed: The value is true, but it must be a whole number"),
        ("node.parents", ["abc"], "node.parents[0]: The value is 'abc'"),
        ("node.step", ..., "step: The key is missing"),
        ("node.kind", ..., "must be a mapping with the key 'kind'"),
        ("node.kind", "stages", "must be a mapping whose 'kind' is one of 'stage', 'data'"),
        ("node.sed", 3, "node.sed: The key 'sed' is unknown. Did you mean 'seed'?"),
        ("extra", 1, "extra: The key 'extra' is unknown"),
        ("run", None, "run: The key 'run' is unknown"),
        (
            "training.selections.0.round",
            3,
            "selections[0].round: The value is 3, but the rounds are 1 to 2",
        ),
        (
            "training.selections.0.round",
            1,
            "dev_score: The value is 61.25, but the round has score 30.6",
        ),
        ("training.selections", [], "training.selections: "),
        ("training.selections.0.scores", [1.0], "[0].scores: There are 1 scores for 2 rounds"),
        ("training.rounds.0.round", 2, "training.rounds: The numbers of the rounds are not"),
        ("training.rounds", [], "training.rounds: The numbers of the rounds are not"),
        (
            "training.rounds.0.dev.emotion_recognition.accuracy",
            130.0,
            "training.rounds[0].dev.emotion_recognition",
        ),
        (f"results.{TARGET}.measures.accuracy", 130.0, "results.emotion_recognition.measures"),
        (f"results.{TARGET}.score", None, "results.emotion_recognition.score: The value is null"),
        (f"results.{TARGET}.score", "x", "results.emotion_recognition.score: The value is 'x'"),
        ("node.identity.seed", 4, "node.digest"),
        (
            "few_sample",
            False,
            "few_sample: The value is False, but node.identity.few_sample is True",
        ),
        ("sizes", {}, "sizes: There are no sizes for"),
        (
            "rows",
            {"file": "p.parquet", "rows": 3, "sha256": "0" * 64},
            "rows.rows: The value is 3, but results has 4 instances",
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


@pytest.mark.parametrize("schema", [1, 2, 3, 5, True, None, "4"])
def test_a_record_of_another_schema_is_refused_with_its_remedy(
    tmp_path: Path, record: Record, schema: Any
) -> None:
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps(record | {"schema": schema}))
    with pytest.raises(RecordError) as refusal:
        read_record(path)
    assert str(refusal.value) == (
        f"{path}: The record has schema {schema!r} instead of 4, because another version of "
        f"tasktransfer wrote it. {REMEDY}."
    )


def test_a_record_of_another_schema_is_not_written(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "metrics.json"
    with pytest.raises(RecordError) as refusal:
        write_record(path, put(record, "schema", 5))
    assert str(refusal.value) == f"{path}: schema: The value is 5, but it must be 4."
    assert list(tmp_path.iterdir()) == []


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
    with pytest.raises(ValueError, match="stop"), replace_file(path) as part:
        part.write_text("half")
        raise ValueError("stop")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_comparable_leaves_out_provenance_and_times_only(record: Record) -> None:
    again = put(record, "provenance", make_provenance(commit=None, tokens_per_second=1.0))
    again = put(again, "training.rounds.0.seconds", 9.0)
    assert select_comparable_parts(again) == select_comparable_parts(record)
    assert select_comparable_parts(
        put(record, "training.selections.0.dev_score", 61.0)
    ) != select_comparable_parts(record)
    assert select_comparable_parts(
        put(record, "training.rounds.0.train_loss.dialogue_nli", 2.0)
    ) != select_comparable_parts(record)


def test_the_schema_agrees_with_the_checks(record: Record) -> None:
    schema = build_record_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(record)
    for key, value in [
        ("schema", 1),
        ("extra", 1),
        ("training.selections.0.dev_score", "x"),
        ("node.step", ...),
        ("node.parents", ["abc"]),
        ("provenance.host.device", "tpu"),
        ("training.rounds.0.seconds", -1),
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


def rows(n: int = 3) -> list[Row]:
    return [Row(i, "dialogue_nli", f"d-{i % 2}", ("a", "b"), ("a",), 50.0) for i in range(n)]


def write(folder: Path, kept: list[Row]) -> Any:
    return write_rows(folder, kept, digest="0" * 64, dataset="DailyDialog")


def test_rows_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    file = write(tmp_path, rows())
    table = read_rows(path, file)
    assert file["rows"] == 3
    assert table["prediction"].to_pylist() == [["a", "b"]] * 3
    assert table["instance_id"].to_pylist() == ["d-0", "d-1", "d-0"]
    assert table["rank"].to_pylist() == [None] * 3
    assert table.schema.metadata[b"dataset"] == b"DailyDialog"
    assert read_node_digest(table) == "0" * 64
    assert write(tmp_path, rows())["sha256"] == file["sha256"]


def test_writing_rows_imports_no_pandas(tmp_path: Path) -> None:
    """Every training writes rows, in a separate process."""
    code = (
        "import sys; from pathlib import Path; "
        "from tasktransfer.results.rows import Row, write_rows; "
        "rows = [Row(0, 't', 'i', ('a',), ('b',), 50.0)]; "
        f"write_rows(Path({str(tmp_path)!r}), rows, digest='0' * 64, dataset='d'); "
        "print('pandas' in sys.modules)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "False"


def test_rows_of_any_text_and_number_are_kept(tmp_path: Path) -> None:
    texts = ("", "é\n", '"quoted" \\', "\U0001f600", "\x00")
    odd = [
        Row(i, "t", text, (text,), texts, 100 / 3, predicted_value=value)
        for i, (text, value) in enumerate(zip(texts, (0.1, 1e-300, -1e300, None, 2.0), strict=True))
    ]
    table = read_rows(tmp_path / "rows.parquet", write(tmp_path, odd))
    assert table["instance_id"].to_pylist() == [*texts]
    assert table["gold"].to_pylist() == [[*texts]] * 5
    assert table["predicted_value"].to_pylist() == [0.1, 1e-300, -1e300, None, 2.0]
    assert table["score"].to_pylist() == [100 / 3] * 5
    infinite = [replace(row, predicted_value=float("inf")) for row in odd]
    again = read_rows(tmp_path / "rows.parquet", write(tmp_path, infinite))
    assert again["predicted_value"].to_pylist() == [float("inf")] * 5


def test_rows_keep_their_clusters_and_what_else_there_is(tmp_path: Path) -> None:
    full = [
        replace(row, cluster=f"d{row.index // 2}", probabilities=(0.25, 0.75), rank=1, split="dev")
        for row in rows()
    ]
    table = read_rows(tmp_path / "rows.parquet", write(tmp_path, full))
    assert table["cluster"].to_pylist() == ["d0", "d0", "d1"]
    assert table["probabilities"].to_pylist() == [[0.25, 0.75]] * 3
    assert (table["rank"].to_pylist(), table["split"].to_pylist()) == ([1] * 3, ["dev"] * 3)


def test_rows_of_another_schema_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write(tmp_path, rows())
    table = read_rows(path)
    pq.write_table(table.replace_schema_metadata({b"schema": b"2"}), path)
    with pytest.raises(RecordError, match=r"the table has schema b'2'"):
        read_rows(path)
    pq.write_table(table.drop_columns(["rank"]), path)
    with pytest.raises(
        RecordError,
        match=r"the table has schema b'3' with the columns",
    ):
        read_rows(path)


def test_damaged_rows_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    file = write(tmp_path, rows())
    with pytest.raises(RecordError, match="3 rows, but its record says 4"):
        read_rows(path, {**file, "rows": 4})
    with pytest.raises(RecordError, match="SHA-256"):
        read_rows(path, {**file, "sha256": "0" * 64})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RecordError, match="cannot be read as Parquet"):
        read_rows(path)
    with pytest.raises(RecordError, match="does not exist, but its record lists it"):
        read_rows(tmp_path / "absent.parquet")


@pytest.mark.parametrize("order", [[0, 2], [0, 0, 1], [1, 0]])
def test_rows_must_cover_the_split_in_order(tmp_path: Path, order: list[int]) -> None:
    kept = rows()
    with pytest.raises(RecordError, match="rows are missing, repeated or out of order"):
        write(tmp_path, [kept[i] for i in order])
    assert list(tmp_path.iterdir()) == []


def test_a_nan_instance_score_is_refused(tmp_path: Path) -> None:
    wrong = Row(0, "dialogue_nli", "d", ("a",), ("a",), float("nan"))
    with pytest.raises(RecordError, match="score nan"):
        write(tmp_path, [wrong])
