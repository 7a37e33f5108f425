"""Inputs of a model from files without answers: dialogues, turns, last turns and query fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tasktransfer.datasets.declared.inputs import Input, Scope, get_scope, read_inputs
from tasktransfer.datasets.declared.section import DialogueSection
from tasktransfer.datasets.declared.task_section import TaskSection
from tasktransfer.errors import DataError

TURNS = {"turns": "turns", "text": "said", "speaker": "who", "id": "name"}
ROWS = [
    {"name": "a", "about": "cars", "turns": [{"who": "me", "said": "hi"}, {"said": "bye"}]},
    {"name": "b", "about": "bread", "turns": [{"said": "yes"}]},
]


def read(
    file: Path,
    scope: Scope,
    section: dict[str, Any] | None = None,
    fields: dict[str, str] | None = None,
) -> list[Input]:
    return list(read_inputs(file, scope, section, fields or {}, []))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "new.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return path


def test_a_dialogue_a_turn_and_a_last_turn_are_inputs(file: Path) -> None:
    whole = [("a", None, "me: hi bye", 10), ("b", None, "yes", 3)]
    assert [each[:4] for each in read(file, "dialogue", TURNS)] == whole
    turns = [("a", 0, "me: hi", 0), ("a", 1, "me: hi bye", 7), ("b", 0, "yes", 0)]
    assert [each[:4] for each in read(file, "turn", TURNS)] == turns
    assert [each[:4] for each in read(file, "last_turn", TURNS)] == turns[1:]


def test_fields_of_the_query_are_read_with_the_dialogue(file: Path) -> None:
    read_queries = [each.query for each in read(file, "dialogue", TURNS, {"topic": "about"})]
    assert read_queries == [{"topic": "cars"}, {"topic": "bread"}]
    assert read(file, "turn", TURNS, {"own": "turns[].said"})[1].query == {"own": "bye"}
    with pytest.raises(DataError, match=r"new\.jsonl:1, other: The value is missing or not a text"):
        read(file, "dialogue", TURNS, {"x": "other"})


def test_rows_of_utterances_are_grouped(tmp_path: Path) -> None:
    file = tmp_path / "new.csv"
    file.write_text("name,said,about\na,hi,x\na,bye,y\nb,yes,z\n")
    section = {"text": "said", "id": "name"}
    found = read(file, "turn", section, {"about": "about"})
    assert [(each.dialogue, each.turn, each.context) for each in found] == [
        ("a", 0, "hi"),
        ("a", 1, "hi bye"),
        ("b", 0, "yes"),
    ]
    assert [each.query["about"] for each in found] == ["x", "y", "z"]


def test_dialogues_without_names_are_named_after_their_rows(tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    file.write_text("".join(f"{json.dumps({'turns': row['turns']})}\n" for row in ROWS))
    assert [each.dialogue for each in read(file, "dialogue", TURNS)] == ["new-1", "new-2"]


@pytest.mark.parametrize(
    ("kind", "label", "dialogue", "scope"),
    [
        ("dialogue_classification", "intent", TURNS, "dialogue"),
        ("utterance_classification", "turns[].mood", TURNS, "turn"),
        ("utterance_classification", "mood", TURNS, "last_turn"),
        ("utterance_classification", "mood", {"text": "said", "id": "name"}, "turn"),
    ],
)
def test_the_label_of_a_task_gives_the_scope(
    kind: Any, label: str, dialogue: dict[str, Any], scope: Scope
) -> None:
    section = TaskSection(kind=kind, label=label)
    assert get_scope(section, DialogueSection.model_validate(dialogue)) == scope


def test_empty_turns_are_refused_with_an_option_of_predict_or_skipped(tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    rows = [ROWS[0], {"name": "c", "turns": [{"said": " "}, {"said": "so"}]}]
    rows.append({"name": "d", "turns": [{"said": ""}]})
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(DataError, match=r":2, turns\[0\]\.said: The text is empty") as found:
        read(file, "dialogue", TURNS)
    assert "or add --skip-empty to skip it" in str(found.value)
    assert "dialogue.skip" not in str(found.value)
    notes: list[str] = []
    inputs = list(read_inputs(file, "dialogue", TURNS, {}, notes, skip_empty=True))
    assert [each.context for each in inputs] == ["me: hi bye", "so"]
    assert notes == [
        f"{file}: 2 turns without text are skipped",
        f"{file}:3: The dialogue has no text, and gets no prediction",
    ]
