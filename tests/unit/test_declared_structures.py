"""Unusual dialogue structures: unsorted turns, several lists, texts in parts, turns without text,
lists in the text of a cell, and several dialogues per row.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from pydantic import ValidationError

from tasktransfer.datasets.declared import cells
from tasktransfer.datasets.declared.answers import TaskReader
from tasktransfer.datasets.declared.dialogues import DeclaredDialogue, read_dialogues
from tasktransfer.datasets.declared.row_fields import SourceRow, build_sort_keys
from tasktransfer.datasets.declared.section import DialogueSection
from tasktransfer.datasets.declared.task_section import TaskSection
from tasktransfer.errors import DataError
from tasktransfer.files.fields import Location

Row = dict[str, Any]


def read(rows: list[Row], /, **section: Any) -> list[DeclaredDialogue]:
    """Read the dialogues of rows from the lines of a file."""
    listed = [
        SourceRow(number, row, Location("own.jsonl", line=number))
        for number, row in enumerate(rows, start=1)
    ]
    return list(read_dialogues(listed, DialogueSection.model_validate(section), "train"))


def contexts(rows: list[Row], /, **section: Any) -> list[str]:
    return [dialogue.context for dialogue in read(rows, **section)]


def answers(rows: list[Row], task: Row, /, **section: Any) -> list[tuple[str, str]]:
    """Return (context, answers) of a task's instances."""
    reader = TaskReader("task", TaskSection.model_validate(task))
    return [
        (instance.context, " + ".join(instance.target))
        for dialogue in read(rows, **section)
        for instance in reader.read_instances(dialogue)
    ]


# --- answers that are missing ---

SKIPS = {"kind": "dialogue_classification", "label": "mood", "missing": "skip"}
UTTERANCE = {"kind": "utterance_classification", "label": "mood"}


@pytest.mark.parametrize("value", [float("nan"), None, "", " ", "N/A", "nan"])
def test_missing_answers_are_skipped(value: Any) -> None:
    rows = [{"text": "a", "mood": "glad"}, {"text": "b", "mood": value}]
    task = {**SKIPS, "missing_values": ["N/A", "nan"]}
    assert answers(rows, task, text="text") == [("a", "glad")]
    several = [{"text": "a", "mood": "glad; sad"}, {"text": "b", "mood": value}]
    assert len(answers(several, {**task, "kind": "multi_label"}, text="text")) == 1
    assert len(answers(rows, {**UTTERANCE, "missing_values": ["N/A", "nan"]}, text="text")) == 1


def test_a_text_is_an_answer_unless_it_is_listed() -> None:
    assert answers([{"text": "a", "mood": "nan"}], SKIPS, text="text") == [("a", "nan")]


def test_one_row_of_a_dialogue_may_have_its_answer() -> None:
    moods = [float("nan"), "glad", None, ""]
    rows = [{"id": 1, "text": "a", "mood": mood} for mood in moods]
    assert answers(rows, SKIPS, text="text", id="id") == [("a a a a", "glad")]


@pytest.mark.parametrize("value", [float("nan"), "nan"])
def test_missing_answers_are_refused_with_the_value(value: Any) -> None:
    task = {**SKIPS, "missing": "refuse", "missing_values": ["nan"]}
    with pytest.raises(
        DataError, match=r":1: The field mood of task task .*\(found '?nan'?\).*missing: skip"
    ):
        answers([{"text": "a", "mood": value}], task, text="text")


def test_the_number_of_an_option_may_be_that_of_a_table() -> None:
    task = {"kind": "multiple_choice", "options": "o", "label": "a"}
    for number in (1, 1.0, "1", "1.0"):
        rows = [{"text": "a", "o": ["no", "yes"], "a": number}]
        assert answers(rows, task, text="text") == [("a", "1")]


# --- names ---


@pytest.mark.parametrize("per", ["split", "file"])
def test_names_of_a_split_or_a_file_begin_with_it(per: str) -> None:
    rows = [SourceRow(1, {"text": "a", "id": 7}, Location("own.jsonl", line=1))]
    section = DialogueSection.model_validate({"text": "text", "id": {"field": "id", "per": per}})
    (dialogue,) = read_dialogues(rows, section, "dev2", "dev")
    assert dialogue.id == {"split": "dev-7", "file": "dev2-7"}[per]
    assert section.by_turn


# --- order ---


@pytest.mark.parametrize(
    "positions",
    [
        [2, 10, 1],
        ["2", "10", "1"],
        [2.5, 10.0, 1.5],
        ["u7_2", "u7_10", "u7_1"],
        ["2024-03-01T10:00:02", "2024-03-01T10:00:10", "2024-03-01T10:00:01"],
        ["2024-03-01T10:00:00+02:00", "2024-03-01T11:00:00+01:00", "2024-03-01T09:00:00+09:00"],
        ["9:02", "9:10", "9:01"],
    ],
)
def test_turns_are_sorted_by_a_field(positions: list[Any]) -> None:
    texts = ("two", "three", "one")
    turns = [{"at": at, "text": text} for at, text in zip(positions, texts, strict=True)]
    expected = ["one two three"]
    assert contexts([{"talk": turns}], turns="talk", text="text", order="at") == expected
    rows = [{"id": "a", **turn} for turn in turns]
    assert contexts(rows, text="text", id="id", order="at") == expected
    assert contexts(rows, text="text", id="id") == ["two three one"]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([1, None], ":1, talk[1].at: The value is missing"),
        ([1, "x"], "cannot be sorted"),
        (["9:59 AM", "1:00 PM"], "cannot be sorted"),
        (["3/1/2024", "1/2/2024"], "cannot be sorted"),
        ([True, False], "cannot be sorted"),
        ([{}, []], "cannot be sorted"),
        (["2024-03-01T10:00:00", "2024-03-01T10:00:00Z"], "cannot be sorted"),
    ],
)
def test_an_order_that_is_none_is_refused(values: list[Any], problem: str) -> None:
    turns = [{"at": at, "text": "hello"} for at in values]
    with pytest.raises(DataError) as error:
        read([{"talk": turns}], turns="talk", text="text", order="at")
    assert problem in str(error.value) and "order" in str(error.value)


def test_values_that_are_equal_keep_their_order() -> None:
    assert build_sort_keys(["1", "1.0", 1]) == [1, 1, 1]
    assert (
        build_sort_keys([float("nan"), 1.0]) is None and build_sort_keys(["9" * 5000, "a"]) is None
    )
    turns = [{"at": 3, "text": "b"}, {"at": 3, "text": "a"}]
    assert contexts([{"talk": turns}], turns="talk", text="text", order="at") == ["b a"]


# --- turns without text ---


def test_turns_without_text_are_left_out_with_their_labels() -> None:
    turns = [
        {"who": "a", "text": "find it", "act": "ask"},
        {"who": "b", "text": None, "tool_calls": [{"name": "look_up"}], "act": "call"},
        {"who": "b", "text": " ", "act": "wait"},
        {"who": "b", "text": "here", "act": "tell"},
    ]
    row = {"talk": turns, "mood": ["calm", "none", "none", "glad"]}
    section = {"turns": "talk", "text": "text", "speaker": "who"}
    with pytest.raises(
        DataError, match=r"talk\[1\]\.text: The text is missing\. .*dialogue\.skip: empty"
    ):
        read([row], **section)
    section |= {"skip": "empty"}
    (dialogue,) = read([row], **section)
    assert dialogue.context == "a: find it b: here" and len(dialogue.empty) == 2
    inside = {"kind": "utterance_classification", "label": "talk[].act"}
    beside = {"kind": "utterance_classification", "label": "mood[]"}
    whole = "a: find it b: here"
    assert answers([row], inside, **section) == [("a: find it", "ask"), (whole, "tell")]
    assert answers([row], beside, **section) == [("a: find it", "calm"), (whole, "glad")]


def test_rows_without_text_are_left_out_and_their_labels_count() -> None:
    rows = [
        {"id": 0.0, "text": "", "topic": "trains"},
        {"id": 0.0, "text": "when does it leave", "topic": ""},
        {"id": 1.0, "text": None, "topic": ""},
    ]
    first, second = read(rows, text="text", id="id", skip="empty")
    assert (first.id, first.context) == ("0", "when does it leave")
    assert second.turns == ()
    task = {"kind": "dialogue_classification", "label": "topic"}
    found = answers(rows[:2], task, text="text", id="id", skip="empty")
    assert found == [("when does it leave", "trains")]


def test_labels_beside_turns_follow_the_order() -> None:
    row = {"talk": [{"n": 2, "text": "b"}, {"n": 1, "text": "a"}], "mood": ["of b", "of a"]}
    task = {"kind": "utterance_classification", "label": "mood[]"}
    found = answers([row], task, turns="talk", text="text", order="n")
    assert sorted(found) == [("a", "of a"), ("a b", "of b")]


# --- texts in parts, pairs and several lists ---


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("as it is", "as it is"),
        ([{"type": "text", "text": "one "}, {"type": "image"}, {"type": "text", "text": "two"}],
         "one two"),
        (["see ", {"type": "link", "text": "example.org"}], "see example.org"),
        ({"type": ["text", "text"], "text": ["one", "two"]}, "one two"),
    ],
)  # fmt: skip
def test_a_text_in_parts_is_joined(content: Any, text: str) -> None:
    assert contexts([{"m": [{"content": content}]}], turns="m", text="content[].text") == [text]


def test_parts_without_text_are_empty_and_numbers_are_refused() -> None:
    image = [{"content": [{"type": "image"}]}, {"content": "here"}]
    assert contexts([{"m": image}], turns="m", text="content[].text", skip="empty") == ["here"]
    with pytest.raises(DataError, match="The value is 5, but it must be a string"):
        read([{"m": [{"content": [{"text": 5}]}]}], turns="m", text="content[].text")
    with pytest.raises(DataError, match=r"The value is \[.*Set dialogue\.text to the path"):
        read([{"m": [{"content": [{"text": "a"}]}]}], turns="m", text="content")


def test_pairs_of_texts_are_two_turns() -> None:
    rounds = [{"human": "hi", "bot": "hello", "mood": "calm"}, {"human": "bye", "bot": "see you"}]
    section: Row = {"turns": "rounds", "text": ["human", "bot"]}
    row = {"rounds": rounds}
    assert contexts([row], **section) == ["human: hi bot: hello human: bye bot: see you"]
    task = {"kind": "utterance_classification", "label": "rounds[].mood"}
    assert answers([row], task, **section) == [("human: hi bot: hello", "calm")]
    row = {"rounds": [["hi", "hello"], ["bye", "see you"]]}
    assert contexts([row], turns="rounds", text=["0", "1"])[0].startswith("0: hi 1: hello")
    reply = {"turns": "rounds", "text": ["text", "labels.0"]}
    row = {"rounds": [{"text": "hi", "labels": ["hello"]}]}
    assert contexts([row], **reply) == ["text: hi labels: hello"]


def test_several_lists_of_turns_are_one_dialogue() -> None:
    pairs = [[{"by": "a", "text": "hi"}, {"by": "b", "text": "hello"}], [{"by": "a", "text": "so"}]]
    section = {"text": "text", "speaker": "by"}
    expected = ["a: hi b: hello a: so"]
    assert contexts([{"talk": pairs}], turns="talk[]", **section) == expected
    sessions = {"sessions": [{"turns": pair} for pair in pairs]}
    assert contexts([sessions], turns="sessions[].turns", **section) == expected
    task = {"kind": "utterance_classification", "label": "talk[][].by"}
    found = answers([{"talk": pairs}], task, turns="talk[]", text="text")
    assert [label for _, label in found] == ["a", "b", "a"]


def test_a_row_may_have_several_dialogues() -> None:
    scenes = [
        {"scene": "s1", "said": [{"text": "hi", "by": ["Ann", "Bob"]}], "mood": "calm"},
        {"scene": "s2", "said": [{"text": "bye", "by": ["Ann"]}], "mood": "sad"},
    ]
    section = {"rows": "scenes", "turns": "said", "text": "text", "speaker": "by", "id": "scene"}
    rows = [{"episode": "e1", "scenes": scenes}]
    found = read(rows, **section)
    assert [(d.id, d.context) for d in found] == [("s1", "Ann, Bob: hi"), ("s2", "Ann: bye")]
    assert [d.location.place for d in found] == [f"own.jsonl:1, item {n}" for n in (1, 2)]
    task = {"kind": "dialogue_classification", "label": "mood"}
    assert [label for _, label in answers(rows, task, **section)] == ["calm", "sad"]
    del section["id"]
    assert [d.id for d in read(rows, **section)] == ["train-1.1", "train-1.2"]
    deeper = read([{"episodes": rows}], **{**section, "rows": "episodes[].scenes"})
    assert [d.context for d in deeper] == ["Ann, Bob: hi", "Ann: bye"]
    with pytest.raises(DataError, match="The value is null, but it must be a list of rows"):
        read([{"episode": "e2"}], **section)


# --- structures in the text of a cell ---


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('["a", null]', ["a", None]),
        ("['a', None, \"it's\"]", ["a", None, "it's"]),
        ("['a' 'b'\n 'c, d' \"it's\"]", ["a", "b", "c, d", "it's"]),
        ("[3 -4\n 2]", [3, -4, 2]),
        ("[{'a': 'x'}\n {'a': nan}]", [{"a": "x"}, {"a": None}]),
        ("[{'a': array(['x', 'y'], dtype=object)}]", [{"a": ["x", "y"]}]),
        ("{'a': (1, 2)}", {"a": [1, 2]}),
    ],
)
def test_lists_in_cells_are_read(text: str, value: Any) -> None:
    assert cells.parse_structure(text) == value


@pytest.mark.parametrize(
    "text",
    ["[1, ..., 2]", "[1 2 ... 3]", "{1, 2}", "[b'a']", "['\\ud800']", "[" * 5000,
     "[__import__('os')]", "[" * 190 + "]" * 190 + ",", "[9" + "9" * 6000 + "]",
     "['a'", "[lambda: 1]", "3", "['a'] * 3"],
)  # fmt: skip
def test_what_is_no_list_raises_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        cells.parse_structure(text)


def test_cells_hold_turns_labels_and_objects() -> None:
    row = {
        "talk": "[{'by': 'a', 'text': 'hi'}\n {'by': 'b', 'text': 'hello'}]",
        "acts": "[3 1]",
        "moods": "['glad', 'calm']",
        "meta": "{'topic': 'trains'}",
    }
    section = {"turns": "talk", "text": "text", "speaker": "by"}
    turns = {"kind": "utterance_classification", "label": "acts[]"}
    assert answers([row], turns, **section) == [("a: hi", "3"), ("a: hi b: hello", "1")]
    several = {"kind": "multi_label", "label": "moods"}
    assert [label for _, label in answers([row], several, **section)] == ["glad + calm"]
    inner = {"kind": "dialogue_classification", "label": "meta.topic"}
    assert [label for _, label in answers([row], inner, **section)] == ["trains"]
    with pytest.raises(DataError, match="begins like a list, but is not valid JSON"):
        read([{"talk": "[{'by': 'a', "}], **section)
    assert contexts([{"talk": "[12:30] hi\n[12:31] hello"}], turns="talk", text="text") == [
        "[12:30] hi [12:31] hello"
    ]


def test_a_list_of_one_label_is_a_label_and_of_several_is_refused() -> None:
    task = {"kind": "dialogue_classification", "label": "accept"}
    assert answers([{"text": "hi", "accept": ["a"]}], task, text="text") == [("hi", "a")]
    with pytest.raises(DataError, match="multi_label"):
        answers([{"text": "hi", "accept": ["a", "b"]}], task, text="text")


@pytest.mark.parametrize(
    "section",
    [
        {"turns": "talk", "order": "n"},
        {"text": "text", "order": "n"},
        {"text": ["one"]},
        {"text": ["one", "one"]},
        {"turns": "talk", "skip": "all"},
        {"turns": "[]"},
    ],
)
def test_sections_that_say_nothing_are_refused(section: Row) -> None:
    with pytest.raises(ValidationError):
        DialogueSection.model_validate(section)


def test_a_long_dialogue_takes_time_by_its_length() -> None:
    turns = [{"text": f"turn {number}", "act": "xy"[number % 2]} for number in range(6000)]
    task = {"kind": "utterance_classification", "label": "talk[].act"}
    start = time.process_time()
    found = answers([{"talk": turns}], task, turns="talk", text="text")
    assert len(found) == 6000 and found[2] == ("turn 0 turn 1 turn 2", "x")
    assert time.process_time() - start < 4  # 15 if each instance looks at all turns
