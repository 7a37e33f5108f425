"""JSON that no file, title or number can hold is refused with a message, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from releases import load_release, tiny_release
from tasktransfer.errors import DataError, RecordError
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
