"""Text from users' files is safe on a terminal, and unchanged when YAML is read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasktransfer.cli import main
from tasktransfer.config.yaml_text import format_comment, format_yaml
from tasktransfer.datasets.declared.check import check_files
from tasktransfer.errors import ConfigError, DataError, escape_line, escape_text
from tasktransfer.files.fields import Location

UNSAFE = {
    "colour": "\x1b[31mred",
    "window title": "\x1b]0;owned\x07",
    "C1 sequence": "\x9b31mred",
    "carriage return": "good\rbad",
    "backspace": "ab\b",
    "bidi override": "abc\u202edef",
    "bidi isolate": "\u2067abc",
    "zero width": "bill\u200bing",
    "byte order mark": "\ufeffa",
    "line separator": "a\u2028b",
    "next line": "a\x85b",
    "tag characters": "a\U000e0041b",
    "soft hyphen": "a\xadb",
}
SAFE = ("café", "cafe\u0301", "日本語", "שלום", "🙂", "a\tb", "a\nb", "²", "")


@pytest.mark.parametrize("kind", UNSAFE)
def test_what_cannot_be_seen_is_escaped(kind: str) -> None:
    shown = escape_line(UNSAFE[kind])
    assert shown.isprintable() and "\\" in shown
    assert str(DataError(f"own.csv: {UNSAFE[kind]}")) == f"own.csv: {escape_text(UNSAFE[kind])}"


@pytest.mark.parametrize("text", SAFE)
def test_what_can_be_seen_stays(text: str) -> None:
    assert escape_text(text) == text


def test_a_location_is_one_line() -> None:
    error = Location("a\nerror: b.csv", line=1).at("x\ny").error("found 1")
    assert "\n" not in str(error)


TEXTS = (
    *("yes", "No", "null", "~", "on", "1e3", "0x10", "0o7", "010", "1_000", "1:30", ".inf", ".5"),
    *("2020-01-01", "a: b", "a #b", "#x", "-", "- a", "? b", "!c", "&d", "*e", "%a", "@b", "`c"),
    *("{x", "[y", "|", "> ", "'q'", '"q"', "---", "...", "<<", "=", "", " lead", "trail ", "\\x41"),
    *("z\n  missing: skip #", "a\tb", "e\u0301", "🙂", "word " * 90),
)


@pytest.mark.parametrize("text", [*TEXTS, *UNSAFE.values()])
def test_yaml_reads_back(text: str) -> None:
    value = {"labels": {text: {"label": text}} if len(text) < 99 else text, "list": [text, text]}
    written = format_yaml(value)
    assert yaml.safe_load(written) == value
    assert written == escape_text(written)


def test_yaml_without_anchors_and_with_texts_that_are_not_numbers() -> None:
    shared: dict[str, Any] = {"x": ["1e3"]}
    assert format_yaml({"a": shared, "b": shared}).count("'1e3'") == 2


def test_yaml_that_no_config_may_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="longer than any"):
        format_yaml({"k" * 300: 1})


def test_a_comment_is_one_line() -> None:
    assert format_comment("a\nb: c\r\u2028") == r"# a\nb: c\r\u2028"


LABELS = ("calm\n        missing: skip #", "\x1b[2Jglad", "sad\u202e", "no", "#x", "x: y")


def test_labels_are_no_yaml(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    rows = [
        {"text": f"so it is number {n} of many", "no": LABELS[n % len(LABELS)]} for n in range(36)
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    checked = check_files([file], "Own")
    assert checked.text == escape_text(checked.text)
    declared = yaml.safe_load(checked.text)["datasets"]["Own"]
    assert declared["tasks"] == {"no": {"kind": "dialogue_classification", "label": "no"}}
    assert r"\n        missing: skip #" in checked.text


def test_a_study_of_odd_labels_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    test_labels_are_no_yaml(tmp_path)
    chosen = "--file own.jsonl --label no --model tiny --hours 900 --cores 1"
    code = main(["init", *chosen.split()])
    out = capsys.readouterr()
    assert code == 0, out.err
    assert out.err == escape_text(out.err) and out.out == escape_text(out.out)
    config = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert config["datasets"]["Own"]["tasks"]["no"] == {
        "kind": "dialogue_classification",
        "label": "no",
    }
    assert config["targets"] == ["Own/no"]
