"""``tasktransfer data check``: a declaration to paste, and problems of lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from declared_files import SHAPES, TASKS, TURNS, dialogue, lines, written

from tasktransfer.cli import main
from tasktransfer.cli.own_data import derive_dataset_name
from tasktransfer.datasets.declared.check import CheckResult, check_files
from tasktransfer.datasets.declared.reader import build_dataset
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.errors import DataError


def world(size: int = 12) -> list[dict[str, Any]]:
    return [dialogue("all", number) for number in range(size)]


def declared(checked: CheckResult) -> dict[str, Any]:
    """Return the printed section as part of a config."""
    section: dict[str, Any] = yaml.safe_load(checked.text)["datasets"]["Own"]
    return section


def test_what_is_printed_is_a_declaration(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text(lines(world()))
    checked = check_files([file], "Own")
    assert checked.problems == []
    section = declared(checked)
    assert section["dialogue"] == TURNS and section["tasks"] == TASKS
    assert section["shares"] == {"test": 0.2}
    assert "# 12 train dialogues, 36 turns" in checked.text
    assert "intent:  # 3 labels: billing (4), login (4), shipping (4)" in checked.text
    dataset = build_dataset("Own", Declaration.model_validate(section), None)
    assert list(dataset.tasks) == ["urgency", "intent"]


@pytest.mark.parametrize("shape", [s for s in SHAPES if s != "saved"])
def test_every_shape_is_guessed(shape: str, tmp_path: Path) -> None:
    meant = written(tmp_path, shape, {"train": world(), "test": [dialogue("b", 0)]})
    section = declared(check_files([Path(file) for file in meant["files"].values()], "Own"))
    assert section["files"] == meant["files"]
    assert section["dialogue"] == meant["dialogue"] and section["tasks"] == meant["tasks"]


Rows = list[dict[str, Any]]


def said(number: int, **of_turn: Any) -> Rows:
    texts = (f"my parcel has not come, it is number {number}", "let me look for it")
    return [{"who": who, "text": text, **of_turn} for who, text in zip("ab", texts, strict=True)]


ODD: dict[str, tuple[str, Callable[[int], Any], dict[str, str], dict[str, str]]] = {
    "turns within an object": (
        "own.jsonl",
        lambda n: {
            "of": {"id": n, "kind": "xy"[n % 2]},
            "body": {"turns": said(n, at={"m": n % 2})},
        },
        {"turns": "body.turns", "text": "text", "speaker": "who", "id": "of.id"},
        {"at_m": "body.turns[].at.m", "of_kind": "of.kind"},
    ),
    "turns that are lists": (
        "own.jsonl",
        lambda n: {"turns": [list(turn.values()) for turn in said(n)], "label": "xy"[n % 2]},
        {"turns": "turns", "text": "1", "speaker": "0"},
        {"label": "label"},
    ),
    "a list of labels beside the turns": (
        "own.jsonl",
        lambda n: {"dialog": [turn["text"] for turn in said(n)], "act": [1, n % 2], "n": n % 3},
        {"turns": "dialog"},
        {"act": "act[]", "n": "n"},
    ),
    "transcripts in cells": (
        "own.csv",
        lambda n: [n, "\n".join(f"{t['who']}: {t['text']}" for t in said(n)), "xy"[n % 2]],
        {"turns": "chat", "text": "text", "speaker": "speaker", "id": "id"},
        {"label": "label"},
    ),
    "names to dialogues": (
        "own.json",
        lambda n: (f"d{n}", {"turns": said(n), "label": 1.5 * (n % 2)}),
        {"turns": "turns", "text": "text", "speaker": "who", "id": "id"},
        {"label": "label"},
    ),
}
"""File, what a dialogue is in it, the dialogue's section and the tasks' labels that are guessed."""


@pytest.mark.parametrize("shape", ODD)
def test_odd_shapes_are_guessed_and_read(shape: str, tmp_path: Path) -> None:
    name, row, dialogue_section, labels = ODD[shape]
    rows, file = [row(number) for number in range(40)], tmp_path / name
    if name.endswith(".csv"):
        with file.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([["id", "chat", "label"], *rows])
    else:
        file.write_text(json.dumps(dict(rows)) if name.endswith(".json") else lines(rows))
    checked = check_files([file], "Own")
    assert checked.problems == []
    section = declared(checked)
    assert section["dialogue"] == dialogue_section
    assert {task: of["label"] for task, of in section["tasks"].items()} == labels
    dataset = build_dataset("Own", Declaration.model_validate(section), None)
    release = dataset.reader.open(Path(), False)
    first = next(iter(release.instances(next(iter(labels)), "train")))
    assert "my parcel has not come" in first.context


def test_a_name_that_dialogues_share_is_not_a_label(tmp_path: Path) -> None:
    file = tmp_path / "shop" / "train_v2.jsonl"
    file.parent.mkdir()
    file.write_text(lines([{**row, "ticket_id": n % 6} for n, row in enumerate(world())]))
    checked = check_files([file], "Own")
    assert "ticket_id" not in declared(checked)["tasks"]
    assert ":7: Dialogue '0' is already at" in checked.problems[0]
    assert derive_dataset_name([file]) == "Shop"


def test_what_a_study_alone_would_be_refused_for_is_reported(tmp_path: Path) -> None:
    rows = [{**row, "intent": "Billing"} if n == 3 else row for n, row in enumerate(world())]
    file = tmp_path / "own.jsonl"
    file.write_text(lines(rows))
    (problem,) = check_files([file], "Own").problems
    assert "own.jsonl:4: The labels 'Billing'" in problem and "and 'billing'" in problem


def test_a_label_of_a_turn_is_located_in_its_item(tmp_path: Path) -> None:
    rows = world()
    rows[3]["messages"][1]["urgency"] = "Low"
    file = tmp_path / "own.json"
    file.write_text(json.dumps(rows))
    (problem,) = check_files([file], "Own").problems
    assert problem.startswith("own.json, item 4, messages[1]: The labels 'Low'")


def test_all_problems_are_reported_with_lines(tmp_path: Path) -> None:
    rows = [json.dumps(row) for row in world(20)]
    copied = {**world()[1], "ticket_id": "copied"}
    copied["messages"] = [*copied["messages"], {"role": "agent", "content": "so be it"}]
    rows[1] = json.dumps({**copied, "ticket_id": "all-1"})
    rows[3] = json.dumps({**world()[3], "messages": [{"role": "a", "content": None}]})
    rows[5] = rows[5][:-9]
    rows[7] = json.dumps({**world()[7], "intent": None})
    rows[9] = ""
    train = tmp_path / "train.jsonl"
    train.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*rows, rows[0]]).encode() + b"\r\n")
    test = tmp_path / "test.jsonl"
    new = {**dialogue("test", 0), "intent": "other"}
    test.write_text(lines([new, copied]))
    checked = check_files([train, test], "Own", limit=5)
    found = "\n".join(checked.problems)
    for words in (
        "train.jsonl:4, messages[0].content: The text is missing",
        "train.jsonl:6: The text is not valid JSON",
        "train.jsonl:8: The field intent of task intent is missing, null or empty",
        "train.jsonl:21: Dialogue 'all-0' is already at",
        "test.jsonl:1: The label 'other' of intent occurs once in test but never in train",
        "test.jsonl:2: The dialogue of test has the same text as one of train",
    ):
        assert words in found
    assert len(checked.problems) == 6
    notes = "\n".join(checked.notes)
    for words in (
        ":1: The byte order mark",
        "CRLF at the end of 21 of 21 lines",
        "Empty lines are skipped (10)",
        "are longer than 5 tokens",
    ):
        assert words in notes


def test_duplicates_and_numbers_are_reported(tmp_path: Path) -> None:
    rows = [{**row, "intent": number % 2} for number, row in enumerate(world())]
    file = tmp_path / "own.jsonl"
    file.write_text(lines([*rows, {**rows[0], "ticket_id": "again"}]))
    checked = check_files([file], "Own")
    assert any(":13: The dialogue has the same text as" in note for note in checked.notes)
    assert "numbers in the file" in checked.text


def test_numbers_have_separators(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    moods = ["b"] * 2 + ["a"] * 2400
    file.write_text(lines([{"text": f"message {n}", "mood": m} for n, m in enumerate(moods)]))
    text = check_files([file], "Own").text
    assert "2 labels: a (2,400), b (2); the largest is 1,200 times the smallest" in text


@pytest.mark.parametrize(
    ("names", "per"), [(("train", "test"), "split"), (("train_1", "train_2", "test"), "file")]
)
def test_names_that_start_again_are_declared(
    names: tuple[str, ...], per: str, tmp_path: Path
) -> None:
    files = [tmp_path / f"{name}.csv" for name in names]
    for file in files:
        rows = [[n, f"{file.stem} says that it is {n} of many", "xy"[n % 2]] for n in range(9)]
        with file.open("w", newline="", encoding="utf-8") as stream:
            doubled = [row for row in rows for _ in range(2)]
            csv.writer(stream).writerows([["dialogue_id", "text", "label"], *doubled])
    checked = check_files(files, "Own")
    assert checked.problems == []
    assert declared(checked)["dialogue"]["id"] == {"field": "dialogue_id", "per": per}
    assert any("restart in each" in note for note in checked.notes)
    dataset = build_dataset("Own", Declaration.model_validate(declared(checked)), None)
    release = dataset.reader.open(Path(), False)
    assert sum(release.dialogues.values()) == 9 * len(files)


def test_a_dialogue_in_two_splits_is_not_mistaken_for_a_name_that_restarts(tmp_path: Path) -> None:
    rows = world()
    (tmp_path / "train.jsonl").write_text(lines(rows))
    (tmp_path / "test.jsonl").write_text(lines(rows[:4]))
    checked = check_files([tmp_path / "train.jsonl", tmp_path / "test.jsonl"], "Own")
    assert "of test has the same name as one of train" in checked.problems[0]


def test_emojis_alone_are_no_duplicates(tmp_path: Path) -> None:
    for split, face in (("train", "🙂"), ("test", "🙃")):
        chats = [[{"who": "a", "text": face * n}, {"who": "b", "text": "👍"}] for n in range(1, 9)]
        rows = [{"turns": chat, "mood": "xy"[n % 2]} for n, chat in enumerate(chats)]
        (tmp_path / f"{split}.jsonl").write_text(lines(rows))
    checked = check_files([tmp_path / "train.jsonl", tmp_path / "test.jsonl"], "Own")
    assert checked.problems == [] and not any("same" in note for note in checked.notes)


def test_short_texts_may_be_in_two_splits_and_long_lists_are_cut(tmp_path: Path) -> None:
    said = [f"number {number} of many" for number in range(40)]
    longer = " ".join(["word"] * 12)
    for split in ("train", "test"):
        rows = [{"text": text, "label": "ab"[n % 2]} for n, text in enumerate([*said, longer])]
        (tmp_path / f"{split}.jsonl").write_text(lines(rows))
    checked = check_files([tmp_path / "train.jsonl", tmp_path / "test.jsonl"], "Own")
    (problem,) = checked.problems
    assert "test.jsonl:41: The dialogue of test has the same text as one of train" in problem
    assert (
        ":1: The dialogue has the same text as" in checked.notes[0]
        and "fewer than 12" in checked.notes[0]
    )
    assert checked.notes[20] == "and 20 more such dialogues"
    assert "82 of 82 dialogues have one turn" in checked.notes[21]


def test_rows_of_a_dialogue_that_are_apart_are_reported(tmp_path: Path) -> None:
    said = [(n % 4, f"this is turn number {n}", "ab"[n % 2]) for n in range(16)]
    rows = [{"dialog_id": name, "utterance": text, "mood": mood} for name, text, mood in said]
    file = tmp_path / "own.jsonl"
    file.write_text(lines(rows))
    checked = check_files([file], "Own")
    assert declared(checked)["dialogue"]["id"] == "dialog_id"
    assert "The rows of dialogue '0' are not consecutive" in checked.problems[0]


def test_a_count_of_turns_is_not_a_label_and_unused_fields_are_reported(tmp_path: Path) -> None:
    rows = [
        {"dialog_id": n // 4, "turn": n % 4, "said": f"turn {n} is here", "mood": "ab"[n % 2],
         "comment": f"a remark of row {n}"}
        for n in range(24)
    ]  # fmt: skip
    file = tmp_path / "own.jsonl"
    file.write_text(lines(rows))
    checked = check_files([file], "Own")
    assert list(declared(checked)["tasks"]) == ["mood"]
    assert checked.notes[:2] == [
        f"{file}: unused text fields: comment",
        f"{file}: unused fields: turn",
    ]


def test_the_command_ends_with_the_code_of_damaged_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text(lines(world()) + "{\n")
    assert main(["data", "check", str(file)]) == 3
    printed = capsys.readouterr()
    assert yaml.safe_load(printed.out)["datasets"]["Own"]["dialogue"] == TURNS
    assert "own.jsonl:13: The text is not valid JSON" in printed.err


def test_rows_without_a_label_are_skipped_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.jsonl"
    rows = world()
    rows[3]["intent"] = None
    file.write_text(lines(rows))
    assert main(["data", "check", str(file)]) == 3
    assert "add the option --skip-missing" in capsys.readouterr().err
    assert main(["data", "check", str(file), "--skip-missing"]) == 0
    printed = capsys.readouterr()
    assert yaml.safe_load(printed.out)["datasets"]["Own"]["tasks"]["intent"]["missing"] == "skip"
    assert "intent: 1 item without an answer is skipped" in printed.err


def test_turns_without_a_label_are_skipped_unless_refused(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    rows = world()
    rows[3]["messages"][1]["urgency"] = None
    file.write_text(lines(rows))
    checked = check_files([file], "Own")
    note = "urgency: 1 turn without an answer is skipped by default. Set missing: refuse to report"
    assert checked.problems == [] and any(line.startswith(note) for line in checked.notes)
    asked = check_files([file], "Own", skip_missing=True)
    assert "urgency: 1 turn without an answer is skipped (missing: skip)" in asked.notes
    section = declared(checked)
    section["tasks"]["urgency"]["missing"] = "refuse"
    with pytest.raises(DataError, match=r"own.jsonl:4, messages\[1\]: The field .*urgency"):
        build_dataset("Own", Declaration.model_validate(section), None)


def test_empty_lists_of_labels_are_counted(tmp_path: Path) -> None:
    lists = [["late"], [], ["late", "rude"], None, ["rude"], []]
    content = lines([{"text": f"this is message {n}", "tags": lists[n % 6]} for n in range(60)])
    file = tmp_path / "own.jsonl"
    file.write_text(content)
    note = "tags: 10 items without an answer and 20 items with an empty list are skipped"
    assert f"{note} (missing: skip)" in check_files([file], "Own").notes
    file.write_text(content.replace("null", '["cold"]'))
    note = "tags: 20 items with an empty list are skipped (missing: skip)"
    assert note in check_files([file], "Own").notes


def test_single_rows_turns_and_dialogues_are_in_the_singular(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    turns = [{"text": f"this is message {n}", "mood": "ab"[n % 2]} for n in range(8)]
    file.write_text(lines([{"turns": turns}]))
    assert "# 1 train dialogue, 8 turns" in check_files([file], "Own").text
    file.write_text(lines([{"text": "this is a message", "topic": "a"}]))
    assert "# 1 row, no task found" in check_files([file], "Own").text
    file.write_text(lines(world(10)))
    notes = "\n".join(check_files([file], "Own").notes)
    assert "1 of the 10 training dialogues is dev" in notes
    assert "2 of the 10 training dialogues are test" in notes


def test_turns_without_text_are_skipped_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.jsonl"
    rows = world()
    rows[3]["messages"][1]["content"] = " "
    file.write_text(lines(rows))
    assert main(["data", "check", str(file)]) == 3
    assert "add the option --skip-empty" in capsys.readouterr().err
    assert main(["data", "check", str(file), "--skip-empty"]) == 0
    printed = capsys.readouterr()
    assert yaml.safe_load(printed.out)["datasets"]["Own"]["dialogue"] == {**TURNS, "skip": "empty"}
    assert "note: 1 turn without text is skipped (dialogue.skip: empty)\n" in printed.err
