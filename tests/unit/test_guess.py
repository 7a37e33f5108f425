"""Declarations guessed for public formats and unusual structures.

Every guess is accepted, unread fields are named, and no structure ends in a traceback.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from odd_structures import FORMATS, ODD_ROWS, damaged_files, odd_file
from public_formats import as_csv, as_lines, as_table, chat, mood, said, topic, turns, utterances

from tasktransfer.cli import main
from tasktransfer.datasets.declared.check import CheckResult, check_files
from tasktransfer.datasets.declared.reader import build_dataset
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.errors import DataError

MOST_SECONDS = 10


def check(folder: Path, file: str, content: str) -> CheckResult:
    path = folder / file
    path.write_text(content, "utf-8")
    return check_files([path], "Own")


def section_in(checked: CheckResult) -> dict[str, Any]:
    section: dict[str, Any] = yaml.safe_load(checked.text)["datasets"]["Own"]
    return section


def turns_shown(checked: CheckResult) -> list[str]:
    return [line[5:] for line in checked.dialogue if line[:4].strip().isdecimal()]


@pytest.mark.parametrize("name", FORMATS)
def test_a_public_format_is_declared_and_read(name: str, tmp_path: Path) -> None:
    known = FORMATS[name]
    checked = check(tmp_path, known.file, known.content)
    section = section_in(checked)
    assert checked.problems == []
    assert section["dialogue"] == known.dialogue
    assert section["tasks"].keys() == known.labels.keys()
    for task, expected in known.labels.items():
        kind, label = (section["tasks"][task][key] for key in ("kind", "label"))
        assert expected in (label, (kind, label))
    assert len(turns_shown(checked)) == known.turns
    for words in known.notes:
        assert any(words in note for note in checked.notes)
    dataset = build_dataset("Own", Declaration.model_validate(section), None)
    release = dataset.reader.open(Path(), False)
    for task in dataset.tasks:
        context = next(iter(release.instances(task, "train"))).context
        assert "parcel" in context or "number" in context or "thank" in context


@pytest.mark.parametrize("name", ODD_ROWS)
def test_an_odd_structure_is_reported_and_raises_nothing_else(name: str, tmp_path: Path) -> None:
    start = time.process_time()
    try:
        checked = check(tmp_path, "odd.jsonl", odd_file(name))
        assert checked.problems or checked.dialogue
    except DataError as error:
        assert "odd.jsonl" in str(error)
    assert time.process_time() - start < MOST_SECONDS


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_format_raises_nothing_else(name: str, tmp_path: Path) -> None:
    for file, content in damaged_files(name, 4):
        try:
            checked = check(tmp_path, file, content)
            assert checked.problems or checked.dialogue
        except DataError as error:
            assert file in str(error)


def test_a_whole_dialogue_is_printed_and_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def row(number: int) -> dict[str, Any]:
        made = turns(number, lambda n, t: {**chat(n, t), "mood": mood(n, t)})
        made[1]["content"] = "red \x1b[31m and\nnew line" + " long" * 200
        return {"messages": made, "topic": topic(number)}

    file = tmp_path / "own.jsonl"
    file.write_text(as_lines(row))
    assert main(["data", "check", str(file)]) == 0
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed)["datasets"]["Own"]["dialogue"]["turns"] == "messages"
    shown = [line for line in printed.splitlines() if line.startswith("# ")]
    assert f"a dialogue as it is read ({file}:1)" in shown[1]
    assert shown[2] == "#    1 user: my parcel 0 has not come yet  [mood: calm]"
    assert r"red \x1b[31m and\nnew line long" in shown[3] and len(shown[3]) < 400
    assert shown[6] == "#      topic: billing" and "\x1b" not in printed
    assert main(["data", "check", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["dialogue"][1].startswith("   1 user: my parcel 0")


def test_dialogues_of_one_turn_are_reported(tmp_path: Path) -> None:
    content = as_csv([{"text": said(n, 0), "topic": topic(n)} for n in range(12)])
    note = check(tmp_path, "own.csv", content).notes[-1]
    assert "12 of 12 dialogues have one turn" in note and "dialogue.id" in note


def test_a_field_that_may_name_dialogues_is_suggested(tmp_path: Path) -> None:
    rows = [{"text": said(n, 0), "fall": f"f{n // 3}", "topic": topic(n)} for n in range(36)]
    told = "Rows with the same fall are consecutive (12 values in 36 rows)"
    assert told in "\n".join(check(tmp_path, "own.csv", as_csv(rows)).notes)
    apart = as_csv([*rows[1:], rows[0]])
    assert "consecutive" not in "\n".join(check(tmp_path, "own.csv", apart).notes)


@pytest.mark.parametrize(("name", "counter"), [("conv", "n"), ("Case No", "n"), ("fall", "turn")])
def test_a_field_that_names_dialogues_is_their_id(name: str, counter: str, tmp_path: Path) -> None:
    rows = [
        {
            name: f"f {n}",
            counter: t if counter == "turn" else n,
            "text": said(n, t),
            "x": mood(n, t),
        }
        for n in range(12)
        for t in range(3)
    ]
    assert section_in(check(tmp_path, "own.csv", as_csv(rows)))["dialogue"]["id"] == name


@pytest.mark.parametrize("name", ["dialogue", "conversation", "transcript"])
@pytest.mark.parametrize("is_csv", [True, False])
def test_a_transcript_is_not_the_id_of_its_dialogue(
    name: str, is_csv: bool, tmp_path: Path
) -> None:
    def row(number: int) -> dict[str, Any]:
        text = f"user: {said(number, 0)}\nagent: {said(number, 1)}"
        return {"id": f"c{number}", name: text, "topic": topic(number)}

    content = as_table(row) if is_csv else as_lines(row)
    section = section_in(check(tmp_path, "own.csv" if is_csv else "own.jsonl", content))
    assert section["dialogue"]["turns"] == name and section["dialogue"]["id"] == "id"
    del section["dialogue"]["id"]
    unnamed = as_lines(lambda n: {key: v for key, v in row(n).items() if key != "id"})
    assert section_in(check(tmp_path, "o.jsonl", unnamed))["dialogue"] == section["dialogue"]


def test_a_text_is_not_the_id_of_its_dialogue(tmp_path: Path) -> None:
    rows = [{"dialogue": said(n // 2, 0), "topic": topic(n // 2)} for n in range(24)]
    section = section_in(check(tmp_path, "own.csv", as_csv(rows)))
    assert section["dialogue"] == {"text": "dialogue"}
    rows = [
        {"conversation": said(n // 4, 0), "dialogue_id": n // 2, "mood": mood(n, 0)}
        for n in range(48)
    ]
    section = section_in(check(tmp_path, "own.csv", as_csv(rows)))
    assert section["dialogue"] == {"text": "conversation", "id": "dialogue_id"}


def test_a_label_that_numbers_turns_by_chance_names_no_dialogues(tmp_path: Path) -> None:
    rows = [{"turn": n % 3, "text": said(n, 0), "fall": f"f{n // 4}"} for n in range(48)]
    assert "id" not in section_in(check(tmp_path, "own.csv", as_csv(rows)))["dialogue"]


def test_a_label_that_occurs_often_may_be_long(tmp_path: Path) -> None:
    labels = ("the customer wants the money back", "the customer has no access to an account")
    rows = [{"text": said(n, 0), "label": labels[n % 2]} for n in range(24)]
    section = section_in(check(tmp_path, "own.csv", as_csv(rows)))
    assert section["dialogue"] == {"text": "text"} and list(section["tasks"]) == ["label"]


def test_fields_that_look_like_ids_are_neither_dialogues_nor_labels(tmp_path: Path) -> None:
    rows = [
        {"text": said(n, 0), "view_id": "one", "is_valid": "ny"[n // 12], "annotator_id": n // 12,
         "topic": topic(n)}
        for n in range(24)
    ]  # fmt: skip
    section = section_in(check(tmp_path, "own.csv", as_csv(rows)))
    assert section["dialogue"] == {"text": "text"}
    assert list(section["tasks"]) == ["is_valid", "topic"]


def test_an_empty_turn_of_few_is_a_problem_with_a_remedy(tmp_path: Path) -> None:
    def row(number: int) -> dict[str, Any]:
        made = turns(number, chat)
        made[2]["content"] = "" if number == 7 else made[2]["content"]
        return {"messages": made, "topic": topic(number)}

    (problem,) = check(tmp_path, "own.jsonl", as_lines(row)).problems
    assert ":8, messages[2].content: The text is empty" in problem and "skip: empty" in problem


def test_turns_that_are_a_text_in_some_rows_are_noted(tmp_path: Path) -> None:
    def row(number: int) -> dict[str, Any]:
        return {
            "messages": turns(number, chat) if number != 7 else "one text",
            "topic": topic(number),
        }

    checked = check(tmp_path, "own.jsonl", as_lines(row))
    (note,) = (note for note in checked.notes if "is a text instead of a list" in note)
    assert "messages" in note and "in 1 of " in note and "'one text'" in note


def test_an_order_that_the_file_has_is_left_alone(tmp_path: Path) -> None:
    rows = [
        {"id": f"d{n}", "turn": 10 * t, "time": f"10:0{t}", "text": said(n, t), "mood": mood(n, t)}
        for n in range(12)
        for t in range(4)
    ]
    section = section_in(check(tmp_path, "own.csv", as_csv(rows)))
    assert "order" not in section["dialogue"] and list(section["tasks"]) == ["mood"]


def test_cells_that_begin_like_lists_and_are_none_are_reported(tmp_path: Path) -> None:
    rows = [{"chat": f"['cut off after {n} words, 'and", "topic": topic(n)} for n in range(12)]
    notes = check(tmp_path, "own.csv", as_csv(rows)).notes
    assert any("chat begins like a list in 12 of 12 rows" in note for note in notes)


def test_fields_that_no_declaration_can_name_are_reported(tmp_path: Path) -> None:
    content = as_lines(lambda n: {"text": said(n, 0), "topic": topic(n), "mood[0]": mood(n, 0)})
    notes = check(tmp_path, "own.jsonl", content).notes
    assert any("A declaration cannot name the fields mood[0]" in note for note in notes)


def test_answers_of_prodigy_that_are_not_accepted_are_reported(tmp_path: Path) -> None:
    def row(number: int) -> dict[str, Any]:
        is_rejected = number == 5
        accept = [] if is_rejected else [topic(number)]
        answer = "reject" if is_rejected else "accept"
        options = [{"id": label, "text": label} for label in ("billing", "login", "shipping")]
        return {"text": said(number, 0), "options": options, "accept": accept, "answer": answer}

    checked = check(tmp_path, "own.jsonl", as_lines(row))
    assert checked.problems == []
    assert section_in(checked)["tasks"]["accept"]["missing"] == "skip"
    assert any("1 row whose answer is not accept is read" in n for n in checked.notes)


def test_many_fields_that_look_like_labels_are_cut(tmp_path: Path) -> None:
    row = {f"k{n}": "" for n in range(100)}
    content = as_lines(lambda n: {"text": said(n, 0)} | {key: topic(n) for key in row})
    checked = check(tmp_path, "own.jsonl", content)
    assert len(section_in(checked)["tasks"]) == 30
    assert any("More than 30 fields look like labels" in note for note in checked.notes)


def test_a_count_that_begins_again_is_reported(tmp_path: Path) -> None:
    rows = [
        {"turn": t, "text": said(n, t), "mood": mood(n, t), "score": (n * t) % 5}
        for n in range(8)
        for t in range(3)
    ]
    notes = check(tmp_path, "own.csv", as_csv(rows)).notes
    assert any("turn counts up and restarts" in note for note in notes)
    assert not any("score counts up" in note or "mood counts" in note for note in notes)


def test_a_field_with_the_names_of_splits_is_not_a_label(tmp_path: Path) -> None:
    splits = ["train"] * 8 + ["validation", "test"]
    rows = [
        {"text": f"this is message {n} of many", "split": splits[n % 10], "mood": "ab"[n % 2]}
        for n in range(40)
    ]
    checked = check(tmp_path, "own.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert "mood:" in checked.text
    assert "split:" not in checked.text
    assert any("split names the split of each row" in note for note in checked.notes)


def test_several_labels_in_one_text_are_noted(tmp_path: Path) -> None:
    tags = ("late", "late|rude", "rude", "cold|late")
    content = as_csv([{"text": said(n, 0), "tags": tags[n % 4]} for n in range(40)])
    checked = check(tmp_path, "own.csv", content)
    assert not checked.problems
    assert any(
        "tags: values like 'cold|late' may be several labels with '|' between them" in note
        for note in checked.notes
    )
    assert "kind: dialogue_classification" in checked.text
    single = as_csv([{"text": said(n, 0), "tags": ("a|b", "c|d")[n % 2]} for n in range(40)])
    assert not [note for note in check(tmp_path, "own.csv", single).notes if "be several" in note]


def test_a_label_in_one_row_of_each_dialogue_is_noted(tmp_path: Path) -> None:
    def notes(label: Callable[[int, int], str]) -> list[str]:
        rows = utterances(lambda n, t: {"id": n, "text": said(n, t), "result": label(n, t)})
        checked = check(tmp_path, "own.csv", as_csv(rows))
        assert section_in(checked)["tasks"]["result"]["kind"] == "dialogue_classification"
        return [note for note in checked.notes if "only one row has a value" in note]

    (note,) = notes(lambda n, t: topic(n) if t == 3 else "")
    assert "result: only one row has a value in 24 of 24 dialogues" in note
    assert "set kind: utterance_classification" in note
    assert notes(lambda n, t: topic(n) if t > 1 else "") == []
    assert notes(lambda n, t: topic(n)) == []


def test_a_dialogue_that_all_rows_repeat_is_named(tmp_path: Path) -> None:
    turns = [{"speaker": "a", "text": said(0, 0)}, {"speaker": "b", "text": said(0, 1)}]
    content = "".join(
        json.dumps({"id": n, "turns": turns, "topic": "xy"[n % 2]}) + "\n" for n in range(12)
    )
    with pytest.raises(DataError, match=r"The value is the same in all 12 rows: turns\."):
        check(tmp_path, "own.jsonl", content)


def test_a_label_with_one_value_is_named(tmp_path: Path) -> None:
    content = as_csv([{"text": said(n, 0), "topic": "billing"} for n in range(12)])
    checked = check(tmp_path, "own.csv", content)
    (problem,) = checked.problems
    assert "# 12 rows, no task found" in checked.text
    assert "No field looks like a label (topic: the value is the same in every row)" in problem
    assert "`tasktransfer init --dataset`" in problem
