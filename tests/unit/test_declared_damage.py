"""Forty damaged dialogue files: each is refused with file, line or row, and remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tasktransfer.cli import main
from tasktransfer.datasets.declared.reader import build_dataset
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.errors import DataError

Json = dict[str, Any]
TURNS: Json = {"turns": "messages", "text": "content", "speaker": "role", "id": "id"}
FLAT: Json = {"text": "text", "id": "id"}
INTENT: Json = {"kind": "dialogue_classification", "label": "intent"}


def row(number: int, **more: Any) -> Json:
    turns = [
        {"role": "a", "content": f"hello there {number}", "urgency": "low"},
        {"role": "b", "content": "hi", "urgency": "high"},
    ]
    return {"id": f"d{number}", "messages": turns, "intent": "xy"[number % 2], **more}


def lines(*rows: Any) -> bytes:
    return "".join(f"{json.dumps(each)}\n" for each in rows).encode()


def good(first: int = 0, count: int = 6) -> list[Json]:
    return [row(number) for number in range(first, first + count)]


def with_third(**more: Any) -> bytes:
    return lines(*good()[:2], row(2, **more), *good()[3:])


def csv(*texts: str) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


ROWS = ("id,text,intent", "d0,hello,x", "d1,there,y", "d2,good,x", "d3,bye,y")
TEST = lines(*good(90))


class Case:
    """A damaged file. ``train``: bytes of the training file; ``words``: parts of the message."""

    def __init__(
        self, train: bytes, *words: str, name: str = "train.jsonl", test: bytes = TEST, **task: Any
    ) -> None:
        self.train, self.words, self.name, self.test = train, words, name, test
        self.dialogue: Json = task.pop("dialogue", TURNS)
        self.task: Json = {**INTENT, **task}


def flat(train: bytes, *words: str) -> Case:
    test = csv("id,text,intent", "t0,hello,x", "t1,hi,y")
    return Case(train, *words, name="train.csv", test=test, dialogue=FLAT)


Q: Json = {"kind": "span", "question": "q", "label": "a"}
C: Json = {"kind": "multiple_choice", "options": "options", "label": "a"}
asked = {"q": "who?", "a": "hello"}
chosen = {"options": ["no", "yes"], "a": 1}

CASES: dict[str, Case] = {
    "empty": Case(b"", "train.jsonl", "has no rows"),
    "blank lines alone": Case(b"\n\n", "train.jsonl", "has no rows"),
    "broken line": Case(lines(*good()) + b'{"id": \n', ":7", "not valid JSON", "fix the line"),
    "cut off": Case(lines(*good())[:-9], ":6", "not valid JSON"),
    "a list in a line": Case(lines(*good(), [1]), ":7", "must be an object"),
    "a text in a line": Case(lines(*good(), "hello"), ":7", "must be an object"),
    "half of a character": Case(lines(*good()) + b'{"id": "\\ud800"}\n', ":7", "surrogate"),
    "nested without end": Case(b"[" * 100_000 + b"\n", ":1", "nested too deeply"),
    "latin-1": Case(lines(*good()) + b'{"id": "caf\xe9"}\n', ":7", "not UTF-8", "Save the file as"),
    "utf-16": Case(lines(*good()).decode().encode("utf-16"), ":1", "UTF-16", "as UTF-8"),
    "nul bytes": Case(b"\0" * 200, ":1", "binary"),
    "no turns": Case(with_third(messages=None), ":3", "messages", "turns is missing"),
    "empty turns": Case(with_third(messages=[]), ":3", "has no turns", "remove the dialogue"),
    "turns of numbers": Case(with_third(messages=[1]), ":3", "messages[0]", "object"),
    "text is null": Case(
        with_third(messages=[{"role": "a", "content": None}]), ":3", "The text is missing"
    ),
    "text is a number": Case(
        with_third(messages=[{"role": "a", "content": 7}]), ":3", "must be a string"
    ),
    "text is empty": Case(
        with_third(messages=[{"role": "a", "content": " "}]), ":3", "is empty", "remove the turn"
    ),
    "speaker is a list": Case(
        with_third(messages=[{"role": ["a", 1], "content": "hi"}]), ":3", "must be the name"
    ),
    "no name": Case(with_third(id=None), ":3", "must be the name of the dialogue"),
    "name is an object": Case(with_third(id={}), ":3", "must be the name of the dialogue"),
    "name twice": Case(lines(*good(), row(0)), ":7", "'d0' is already at", ":1"),
    "label is null": Case(
        with_third(intent=None), ":3", "is missing, null or empty", "missing: skip"
    ),
    "label is a list": Case(with_third(intent=["x", "y"]), ":3", "must be a label", "multi_label"),
    "label is NaN": Case(with_third(intent=float("nan")), ":3", "found nan"),
    "labels differ in case": Case(with_third(intent="X"), "differ only in", "Use one spelling"),
    "one label": Case(
        lines(*(row(n, intent="x") for n in range(6))),
        *("train.jsonl:1", "fewer than two labels", "with other labels"),
        test=lines(row(90, intent="x")),
    ),
    "label in test alone": Case(
        lines(*good()),
        *("test.jsonl:7", "not a label in train", "labels"),
        test=TEST + lines(row(99, intent="z")),
    ),
    "label that is not listed": Case(
        with_third(intent="zz"), "train.jsonl:3", "not in the list of labels", labels=["x", "y"]
    ),
    "dialogue in two splits": Case(
        lines(*good(), row(90)),
        "'d90' is in test and in train",
        "test.jsonl:1",
        "Keep the dialogue in",
    ),
    "text in two splits": Case(
        lines(*good(), row(50, messages=[{"role": "a", "content": "so many words " * 6}])),
        *("has the same text", "test.jsonl:7", "train.jsonl:7"),
        test=TEST + lines(row(51, messages=[{"role": "b", "content": "So many words. " * 6}])),
    ),
    "answer that is not there": Case(
        lines(row(0, **asked), row(1, **{**asked, "a": "bye"})),
        *(":2", "'bye' does not occur in the dialogue", "word for word"),
        test=lines(row(90, **asked)),
        **Q,
    ),
    "question is missing": Case(
        lines(row(0, **asked), row(1, a="hello")),
        *(":2", "q: The value is null, but it must be a string"),
        test=lines(row(90, **asked)),
        **Q,
    ),
    "no such option": Case(
        lines(row(0, **chosen), row(1, options=["a", "b"], a=2)),
        *(":2", "neither one of the options", "0 to 1"),
        test=lines(row(90, **chosen)),
        **C,
    ),
    "options of another number": Case(
        lines(row(0, **chosen), row(1, options=["a", "b", "c"], a=0)),
        *("train.jsonl:1 has 2, but train.jsonl:2 has 3", "same number"),
        test=lines(row(90, **chosen)),
        **C,
    ),
    "rating off its scale": Case(
        lines(row(0, intent=1), row(1, intent=9)), ":2", "1 to 5", kind="rating", scale=[1, 5]
    ),
    "json is cut off": Case(
        json.dumps(good(), indent=1).encode()[:-20],
        "the JSON is broken",
        "train.json:96:1",
        name="train.json",
    ),
    "json of a number": Case(b"7", ":1", "must be a list of objects", name="train.json"),
    "csv without a name": flat(csv("id,,text", *ROWS[1:]), ":1", "an empty name"),
    "csv with a name twice": flat(csv("id,text,text", *ROWS[1:]), ":1", "Two columns"),
    "csv with a column more": flat(csv(*ROWS, "d4,a,b,x"), ":6", "4 columns", "in quotes"),
    "csv with a column less": flat(csv(*ROWS, "d4,a"), ":6", "2 columns"),
    "csv with an open quote": flat(csv(*ROWS, 'd4,"a,x'), ":6", "quotation mark is never closed"),
    "csv apart": flat(csv(*ROWS, "d0,again,x"), ":6", "are not consecutive", "sort the file"),
    "csv of two labels": flat(csv(*ROWS, "d3,more,x"), ":6", "has the value 'y'", "one answer"),
    "no Parquet": Case(b"PAR1" + b"\0" * 50, "train.parquet", "write it", name="train.parquet"),
    "no Arrow": Case(b"ARROW1" + b"\1" * 50, "train.arrow", "write it", name="train.arrow"),
    "no gzip": Case(b"hello", "is not compressed", "remove .gz", name="train.jsonl.gz"),
    "unknown ending": Case(
        b"hello", "train.xlsx", "not a supported format", "Save the sheet as CSV", name="train.xlsx"
    ),
    "no ending": Case(b"hello", "train", "has no extension", "Save the file as", name="train"),
    "a text file": Case(b"hello", ".txt", "not a supported", "to JSON lines", name="train.txt"),
}


def test_they_are_forty_or_more() -> None:
    assert len(CASES) >= 40


def written(case: Case, folder: Path) -> Json:
    """Write the files of a case, and return their declaration."""
    train = folder / case.name
    test = folder / ("test.csv" if case.name.endswith(".csv") else "test.jsonl")
    train.write_bytes(case.train)
    test.write_bytes(case.test)
    return {
        "files": {"train": str(train), "test": str(test)},
        "dialogue": case.dialogue,
        "tasks": {"intent": case.task},
    }


@pytest.mark.parametrize("name", CASES)
def test_damage_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    declaration = Declaration.model_validate(written(case, tmp_path))
    with pytest.raises(DataError) as error:
        build_dataset("Own", declaration, None)
    text = str(error.value)
    for word in case.words:
        assert word.casefold() in text.casefold(), text
    assert "; " in text or ". " in text, text
    assert len(text) < 1000


def test_a_plan_of_damaged_data_ends_with_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Memory and time are measured in ``tests/hostile``."""
    case = CASES["csv with an open quote"]
    study = {
        "study": "damaged",
        "datasets": {"Own": written(case, tmp_path)},
        "models": [{"name": "tiny", "family": "encoder", "checkpoint": "tiny"}],
        "algorithms": ["baseline"],
    }
    config = tmp_path / "study.yaml"
    config.write_text(json.dumps(study))
    assert main(["plan", "--config", str(config)]) == 3
    message = capsys.readouterr().err.casefold()
    assert all(word.casefold() in message for word in case.words)
