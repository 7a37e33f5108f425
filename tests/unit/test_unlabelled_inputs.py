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
    ("rows", "names"),
    [
        ([{"ticket_id": f"T{n}", "turns": ROWS[0]["turns"]} for n in range(2)], ["T0", "T1"]),
        ([{"ticket_id": n, "body": "hi there"} for n in range(2)], ["0", "1"]),
        ([{"ticket_id": 7, "body": "hi there"} for n in range(2)], ["new-1", "new-2"]),
        ([{"dialogue": f"hi there {n}"} for n in range(2)], ["new-1", "new-2"]),
    ],
)
def test_names_are_guessed_if_the_field_of_the_training_files_is_absent(
    tmp_path: Path, rows: list[dict[str, Any]], names: list[str]
) -> None:
    file = tmp_path / "new.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    notes: list[str] = []
    assert [each.dialogue for each in read_inputs(file, "dialogue", TURNS, {}, notes)] == names
    assert ("ticket_id" in "".join(notes)) == ("new-1" not in names)


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


def test_dialogues_without_turns_are_refused_or_skipped(tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    rows = [ROWS[0], {"name": "c", "turns": []}, {"name": "d"}, {"name": "e", "turns": None}]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(DataError) as found:
        read(file, "dialogue", TURNS)
    assert str(found.value).splitlines() == [
        f"{file}:2, turns: The dialogue has no turns. Remove the dialogue, add its turns, or add "
        "--skip-empty to skip it.",
        *(
            f"{file}:{line}, turns: The list of turns is missing. Remove the dialogue, add its "
            "turns, or add --skip-empty to skip it."
            for line in (3, 4)
        ),
        "To skip lines and dialogues that cannot be read, add the option --skip-broken.",
    ]
    notes: list[str] = []
    inputs = list(read_inputs(file, "dialogue", TURNS, {}, notes, skip_empty=True))
    assert [each.dialogue for each in inputs] == ["a"]
    assert notes == [
        f"{file}:2: 3 dialogues, of which this is the first, have no text, and get no prediction"
    ]


BROKEN = ["{", '{"name": "x", "turns": [{"said": 7}]}', '{"name": "y", "turns": 1}']


def test_all_broken_lines_are_reported_or_skipped(tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    file.write_text("".join(f"{line}\n" for line in [json.dumps(ROWS[0]), *BROKEN, "[]"]))
    inputs = read_inputs(file, "dialogue", TURNS, {}, [])
    assert next(inputs).dialogue == "a"
    with pytest.raises(DataError) as found:
        next(inputs)
    reported = str(found.value).splitlines()
    assert [line.partition(": ")[0] for line in reported[:-1]] == [
        f"{file}:2",
        f"{file}:3, turns[0].said",
        f"{file}:4, turns",
        f"{file}:5",
    ]
    assert "--skip-broken" in reported[-1]
    notes: list[str] = []
    inputs = read_inputs(file, "dialogue", TURNS, {}, notes, skip_broken=True)
    assert [each.dialogue for each in inputs] == ["a"]
    assert notes == [
        f"{file}: 4 problems, whose lines or dialogues get no prediction",
        *reported[:-1],
    ]


def test_reading_ends_after_twenty_problems(tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    file.write_text("".join(f"{line}\n" for line in [json.dumps(ROWS[0]), *BROKEN * 20]))
    with pytest.raises(DataError) as found:
        read(file, "dialogue", TURNS)
    reported = str(found.value).splitlines()
    assert len(reported) == 22
    assert "has more than 20 problems" in reported[20]
    notes: list[str] = []
    list(read_inputs(file, "dialogue", TURNS, {}, notes, skip_broken=True))
    assert [notes[0], notes[-1]] == [
        f"{file}: 60 problems, whose lines or dialogues get no prediction",
        "and 40 more problems",
    ]


def test_rows_of_utterances_report_all_broken_dialogues(tmp_path: Path) -> None:
    file = tmp_path / "new.csv"
    file.write_text("name,said\na,hi\n,so\nb,\nb,yes\na,bye\nc,well\n")
    section = {"text": "said", "id": "name"}
    with pytest.raises(DataError) as found:
        read(file, "dialogue", section)
    problems = [line.partition(": ")[0] for line in str(found.value).splitlines()[:-1]]
    assert problems == [f"{file}:3, name", f"{file}:4, said", f"{file}:6"]
    inputs = read_inputs(file, "dialogue", section, {}, [], skip_broken=True)
    assert [each.dialogue for each in inputs] == ["a", "c"]


@pytest.mark.parametrize(
    ("name", "content", "section", "message"),
    [
        (
            "new.csv",
            "ticket,mesages\n1,2\n",
            {"turns": "messages", "text": "text"},
            "new.csv:1: The column messages is missing, but the training files have the dialogue "
            "there. The file has the columns ticket, mesages. Did you mean 'mesages'? Rename",
        ),
        (
            "new.csv",
            "when,amount\n1,2\n",
            {"text": "said", "id": "name"},
            "new.csv:1: The columns said, name are missing, but the training files have the "
            "dialogue there. The file has the columns when, amount. Rename the columns as in",
        ),
        (
            "new.jsonl",
            '\n{"a": 1}\n{"b": 2}\n',
            {"turns": "chat.messages[].parts", "text": "text"},
            "new.jsonl:2: The field chat.messages is missing, but the training files have the "
            "dialogue there. The file has the fields a, b. Rename the fields as in",
        ),
    ],
)
def test_missing_columns_are_named(
    tmp_path: Path, name: str, content: str, section: dict[str, Any], message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as found:
        read(tmp_path / name, "dialogue", section)
    assert message in str(found.value)
