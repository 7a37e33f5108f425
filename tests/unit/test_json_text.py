"""JSON that no file, title or number can hold is refused with a message, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from releases import load_release, tiny_release
from tasktransfer import cli
from tasktransfer.core.node_json import from_json, to_json
from tasktransfer.core.nodes import Stage
from tasktransfer.datasets import get_card_digests
from tasktransfer.designs import open_study
from tasktransfer.errors import ConfigError, DataError, RecordError
from tasktransfer.files import json_text
from tasktransfer.results.records import read_record

ROOT = Path(__file__).resolve().parents[2]
DEMO = str(ROOT / "workflow" / "presets" / "demo.yaml")
DEEP = '{"a":' * 100_000
DIGITS = "9" * 5000
HALF = '{"a": [1, {"b": "x\\ud800y"}]}'
USELESS = [
    (DEEP, "nested too deeply"),
    (f'{{"a": {DIGITS}}}', "thousands of digits"),
    (HALF, r"a\[1\]\.b: .*half of a surrogate pair"),
    ('{"\\udc00": 1}', "half of a surrogate pair"),
    ("{", "Expecting"),
]


@pytest.mark.parametrize(("text", "part"), USELESS)
def test_useless_json(text: str, part: str) -> None:
    for content in (text, text.encode()):
        with pytest.raises(ValueError, match=part):
            json_text.loads(content)


def test_whole_pairs_are_characters() -> None:
    assert json_text.loads('["\\ud83d\\ude00"]') == ["\U0001f600"]


def test_a_file_beyond_any_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "MAX_BYTES", 1000)
    path = tmp_path / "metrics.json"
    path.write_text("[]" + " " * 1000)
    with pytest.raises(RecordError, match=r"metrics\.json: .*larger than 1,000 bytes"):
        read_record(path)


@pytest.mark.parametrize(("text", "part"), USELESS)
def test_a_useless_record(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "metrics.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=part):
        read_record(path)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x\ud800y", r"TLiDB_Friends\.json: .*data\[0\]\.dialogue\[0\]\.utterance"),
        (1, "thousands of digits"),
        ([], "nested too deeply"),
    ],
)
def test_a_useless_release(tmp_path: Path, text: Any, part: str) -> None:
    tiny_release("Friends").write(tmp_path)
    path = tmp_path / "TLiDB_Friends" / "TLiDB_Friends.json"
    value = json.loads(path.read_text())
    value["data"][0]["dialogue"][0]["utterance"] = text
    written = json.dumps(value)
    if text == 1:
        written = written.replace('"utterance": 1', f'"utterance": {DIGITS}')
    if text == []:
        written = written.replace('"utterance": []', f'"utterance": {"[" * 100_000}')
    path.write_text(written)
    with pytest.raises(DataError, match=part):
        load_release(tmp_path, "Friends")


def stage_json() -> dict[str, Any]:
    finetune = next(s for s in open_study(DEMO).plan.stages if s.kind == "finetune")
    told: dict[str, Any] = to_json(finetune)
    return told


def _nested(levels: int) -> dict[str, Any]:
    stage = stage_json()
    for _ in range(levels):
        stage = {**stage, "starts": [{"stage": stage}]}
    return stage


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("seed", "x", "seed: Input should be a valid integer, found 'x'"),
        ("seed", True, "seed: Input should be a valid integer"),
        ("seed", -1, "seed: found -1, which is too small"),
        ("data", {"revision": "r"}, "data.name: Field required"),
        ("train_tasks", [], "train_tasks: is empty"),
        ("model", {}, "model.name: Field required"),
        ("training", {"epochs": 0}, "training.epochs: found 0, which is too small"),
        ("training", {"epoch": 1}, "training.epoch: Unexpected keyword argument"),
        ("starts", {}, "starts: Input should be a valid array"),
        ("starts", [{"stage": {}}], "starts.0.stage.kind: Field required"),
        (
            "sampler",
            "evenly",
            "sampler: Input should be 'task_batches', 'uniform', 'mixed', 'together'",
        ),
        ("nonsense", 1, "nonsense: Unexpected keyword argument"),
    ],
)
def test_a_stage_that_cannot_be(key: str, value: Any, part: str) -> None:
    with pytest.raises(ConfigError, match="--stage: This is not a stage") as caught:
        from_json(Stage, {**stage_json(), key: value}, "--stage")
    assert part in str(caught.value)


def test_a_stage_is_read_as_it_was_written() -> None:
    for stage in open_study(DEMO).plan.stages[::7]:
        assert (
            from_json(Stage, json.loads(json.dumps(to_json(stage))), "--stage", get_card_digests)
            == stage
        )
    with pytest.raises(ConfigError, match="more than 40 levels"):
        from_json(Stage, _nested(30), "--stage")


@pytest.mark.parametrize(
    ("option", "text"),
    [("--stage", DEEP[:60_000]), ("--stage", DIGITS), ("--stage", "[1]"), ("--stage", "null")],
)
def test_a_training_gets_its_arguments(
    option: str, text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    where = ["--encoded", "e", "--base", "b", "--out", str(tmp_path / "o"), "--config", DEMO]
    assert cli.main(["train", option, text, *where]) == 2
    assert capsys.readouterr().err.startswith(f"error: {option}: ")


def test_a_training_gets_as_many_folders_as_it_starts_from(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["--stage", json.dumps(stage_json()), "--base", "b", "--encoded", "e"]
    assert cli.main(["train", *words, "--out", str(tmp_path / "o"), "--config", DEMO]) == 2
    assert "--start: The option names 0 folders" in capsys.readouterr().err
