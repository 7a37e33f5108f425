"""Splits sampled from train: duplicates together, rare labels in train, merged label spellings."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tasktransfer.cli import main
from tasktransfer.datasets.dataset import Dataset
from tasktransfer.datasets.declared.check import check_files
from tasktransfer.datasets.declared.reader import build_dataset
from tasktransfer.datasets.declared.sampling import sample_splits
from tasktransfer.datasets.declared.section import Declaration, SharesSection
from tasktransfer.datasets.declared.spellings import merge_spellings, normalise_label
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS

Row = dict[str, Any]
MOOD = {"kind": "dialogue_classification", "label": "mood"}


def dialogues(size: int, labels: Sequence[Any] = "abc") -> list[Row]:
    return [
        {"id": f"d{n}", "text": f"it is number {n} of many", "mood": labels[n % len(labels)]}
        for n in range(size)
    ]


def made(folder: Path, rows: Sequence[Row], **more: Any) -> Dataset:
    file = folder / "own.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    task = more.pop("task", MOOD)
    declaration = {
        "files": str(file),
        "shares": {"test": 0.2},
        "dialogue": {"text": "text", "id": "id"},
        "tasks": {"mood": task},
        **more,
    }
    return build_dataset("Own", Declaration.model_validate(declaration), None)


def drawn(dataset: Dataset) -> dict[str, list[tuple[str, str, str]]]:
    """Return split → (dialogue, text, label)."""
    release = dataset.reader.open(Path(), False)
    return {
        split: [(i.dialogue_id, i.context, i.target[0]) for i in release.instances("mood", split)]
        for split in SPLITS
    }


def names(found: dict[str, list[tuple[str, str, str]]], split: str) -> set[str]:
    return {name for name, _, _ in found[split]}


TEST = {f"d{n}" for n in (1, 3, 8, 11, 20, 22, 31, 32, 38, 41, 45, 51)}
DEV = {f"d{n}" for n in (9, 17, 30, 33, 39, 53)}
REVISION = "ce8a1e1e1de6bc4366698e58a9585573f254bce57f667d2a40ff5bba8f2e09ae"
"""Of the sixty dialogues, as drawn before duplicates and labels played a part."""


def test_a_draw_without_duplicates_is_what_it_was(tmp_path: Path) -> None:
    dataset = made(tmp_path, dialogues(60))
    found = drawn(dataset)
    assert (names(found, "test"), names(found, "dev")) == (TEST, DEV)
    assert dataset.reader.revision(Path(), None) == REVISION
    assert not any("same" in note for note in dataset.notes)


def copies(rows: Sequence[Row], *numbers: int) -> list[Row]:
    """Return copies of dialogues with other names and other punctuation."""
    return [
        {**rows[n], "id": f"copy{n}-{k}", "text": f"It is:  number {n}, of many{'!' * k}"}
        for k, n in enumerate(numbers)
    ]


@pytest.mark.parametrize(
    "numbers",
    [tuple(range(60)), (1, 2, 3), (1,) * 9, (4,) * 50, (0, 0, 1, 1, 2, 2)],
    ids=["all twice", "three", "one ten times", "half of all", "three times"],
)
def test_no_text_is_in_two_drawn_splits(numbers: tuple[int, ...], tmp_path: Path) -> None:
    rows = dialogues(60)
    rows += copies(rows, *numbers)
    dataset = made(tmp_path, rows)
    found = drawn(dataset)
    texts = {s: {"".join(filter(str.isdigit, text)) for _, text, _ in found[s]} for s in SPLITS}
    assert not texts["test"] & texts["train"] and not texts["dev"] & (
        texts["train"] | texts["test"]
    )
    sizes = {split: len(found[split]) for split in SPLITS}
    assert sum(sizes.values()) == len(rows)
    assert abs(sizes["test"] - 0.2 * len(rows)) < 3 and abs(sizes["dev"] - 0.1 * len(rows)) < 3
    groups = len(numbers) + len(set(numbers))
    assert any(
        f"{groups} of the {len(rows)} training dialogues have the same" in x for x in dataset.notes
    )
    assert dataset.reader.revision(Path(), None) != REVISION


def test_the_order_of_a_file_is_not_part_of_the_draw(tmp_path: Path) -> None:
    rows = dialogues(40)
    rows += copies(rows, 1, 2, 3, 3, 9)
    first = drawn(made(tmp_path, rows))
    random.Random(3).shuffle(rows)
    second = drawn(made(tmp_path, rows))
    assert {s: sorted(first[s]) for s in SPLITS} == {s: sorted(second[s]) for s in SPLITS}


def test_a_survey_is_remembered_with_what_was_moved(tmp_path: Path) -> None:
    rows = dialogues(30)
    file = tmp_path / "own.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, *copies(rows, *range(30))]))
    section = Declaration.model_validate(
        {
            "files": str(file),
            "shares": {"test": 0.2},
            "dialogue": {"text": "text", "id": "id"},
            "tasks": {"mood": MOOD},
        }
    )
    first, second = (build_dataset("Own", section, tmp_path / "memory") for _ in range(2))
    assert drawn(first) == drawn(second)
    assert first.reader.revision(Path(), None) == second.reader.revision(Path(), None)


def test_a_label_with_one_example_stays_in_train(tmp_path: Path) -> None:
    for name in sorted(TEST | DEV):  # each would be drawn otherwise
        rows = [{**row, "mood": "rare"} if row["id"] == name else row for row in dialogues(60)]
        dataset = made(tmp_path, rows)
        found = drawn(dataset)
        assert name in names(found, "train")
        assert [len(found[split]) for split in SPLITS] == [42, 6, 12]
        (note,) = (note for note in dataset.notes if "rare' (" in note)
        assert "1 label is in a single training dialogue, which stays in train" in note
        line = 1 + int(name[1:])
        assert f"'rare' (the first at own.jsonl:{line})" in note


def test_a_label_that_the_draw_would_take_whole_stays(tmp_path: Path) -> None:
    rows = [{**row, "mood": "rare"} if row["id"] in TEST else row for row in dialogues(60)]
    found = drawn(made(tmp_path, rows))
    assert "rare" in {label for _, _, label in found["train"]}
    assert "rare" in {label for _, _, label in found["test"]}


def test_labels_that_all_have_one_example_are_drawn_and_named(tmp_path: Path) -> None:
    rows = dialogues(20, [f"label {n}" for n in range(20)])
    dataset = made(tmp_path, rows)
    assert len(drawn(dataset)["test"]) == 4
    assert any("4 labels are in test but not in train" in note for note in dataset.notes)


def test_a_listed_label_that_only_test_has_is_named(tmp_path: Path) -> None:
    train, test = tmp_path / "train.jsonl", tmp_path / "test.jsonl"
    train.write_text("".join(f"{json.dumps(row)}\n" for row in dialogues(30)))
    rows = [
        {"id": f"t{n}", "text": f"tested by number {n}", "mood": "abz"[n % 3]} for n in range(9)
    ]
    test.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    dataset = build_dataset(
        "Own",
        Declaration.model_validate(
            {
                "files": {"train": str(train), "test": str(test)},
                "dialogue": {"text": "text", "id": "id"},
                "tasks": {"mood": {**MOOD, "labels": ["a", "b", "c", "z"]}},
            }
        ),
        None,
    )
    notes = [note for note in dataset.notes if "not in train" in note]
    assert notes == ["mood: 1 label is in test but not in train: 'z' (the first at test.jsonl:3)"]


def test_few_samples_without_a_label_are_reported(tmp_path: Path) -> None:
    rows = [{**row, "mood": "rare"} if n < 2 else row for n, row in enumerate(dialogues(60))]
    dataset = made(tmp_path, rows, few_sample={"instances": 3})
    assert any("in no training dialogue of few_sample" in note for note in dataset.notes)


def test_groups_are_drawn_until_a_split_is_full() -> None:
    shares = SharesSection(test=0.25, dev=0.25)
    numbers = [10, 20, 30, 40, 50, 60, 70, 80]
    plain = sample_splits(numbers, shares, ("dev", "test"))
    assert sample_splits(numbers, shares, ("dev", "test"), numbers, {80}) == plain
    assert [plain.get_split_by_number(n) for n in numbers] == ["test"] * 2 + ["dev"] * 2 + [
        "train"
    ] * 4
    groups = [10, 20, 20, 20, 50, 10, 70, 80]  # 20 is too large for test and for dev
    both = sample_splits(numbers, shares, ("dev", "test"), groups)
    assert [both.get_split_by_number(n) for n in numbers] == [
        *("test", "train", "train", "train", "dev", "test", "dev", "train")
    ]
    alike = sample_splits(numbers, shares, ("test",), [10] * 8)
    assert {alike.get_split_by_number(n) for n in numbers} == {"test"}


def test_all_dialogues_that_say_the_same_are_refused(tmp_path: Path) -> None:
    rows = [{**row, "text": "hello"} for row in dialogues(9)]
    with pytest.raises(DataError, match="9 training dialogues have the same text as another"):
        made(tmp_path, rows)


def test_texts_with_different_answers_are_reported_with_lines(tmp_path: Path) -> None:
    rows = dialogues(30)
    rows.append({**rows[4], "id": "again", "mood": "c"})
    dataset = made(tmp_path, rows)
    assert any(
        "mood: training dialogues with the same text have different answers (1 text," in note
        for note in dataset.notes
    )
    checked = check_files([tmp_path / "own.jsonl"], "Own")
    (note,) = (note for note in checked.notes if ":31: The dialogue has the same text" in note)
    assert ":5, but mood is 'c' here and 'b' there" in note
    assert not checked.problems


def test_validate_tells_what_was_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = dialogues(30)
    made(tmp_path, [*rows, *copies(rows, *range(30))])
    study = {
        "study": "drawn",
        "data": {"release": "tiny_world"},
        "datasets": {
            "Own": {
                "files": "own.jsonl",
                "shares": {"test": 0.2},
                "dialogue": {"text": "text", "id": "id"},
                "tasks": {"mood": MOOD},
            }
        },
        "models": [{"name": "tiny", "family": "encoder", "checkpoint": "tiny"}],
        "algorithms": ["baseline"],
        "training": {"epochs": 1},
    }
    Path("config.yaml").write_text(json.dumps(study))
    assert main(["validate"]) == 0
    assert (
        "60 of the 60 training dialogues have the same text as another" in capsys.readouterr().out
    )


# --- spellings ---

ONE_LABEL = {
    "Unicode forms": ["café", "cafe\u0301"],
    "zero width": ["billing", "bill\u200bing", "billing\ufeff", "\u2060billing"],
    "soft hyphen": ["refund", "re\xadfund"],
    "no-break blanks": ["credit card", "credit\xa0card", "credit card\u2009"],
    "full width": ["ABC", "\uff21\uff22\uff23"],
    "whole numbers": ["1", "1.0", "1.00", "1."],
    "nought": ["0", "0.0", "-0", "-0.0"],
    "truth": ["true", "True", "TRUE"],
    "emoji forms": ["\u2764", "\u2764\ufe0f"],
}


@pytest.mark.parametrize("kind", ONE_LABEL)
def test_spellings_of_one_label_are_merged_and_told(kind: str, tmp_path: Path) -> None:
    alike = ONE_LABEL[kind]
    dataset = made(tmp_path, dialogues(60, [*alike, "else"]))
    assert dataset.tasks["mood"].labels == tuple(sorted([alike[0], "else"]))
    found = drawn(dataset)
    assert {label for split in SPLITS for _, _, label in found[split]} == {alike[0], "else"}
    assert any("spelling differs" in note for note in dataset.notes)
    checked = check_files([tmp_path / "own.jsonl"], "Own")
    assert "mood:  # 2 labels: " in checked.text and not checked.problems
    assert sum("spelling differs" in note for note in checked.notes) == 1


def test_numbers_and_texts_of_numbers_are_one_label(tmp_path: Path) -> None:
    dataset = made(tmp_path, dialogues(60, [1, 1.0, "1", "1.0", True, "True", "2"]))
    assert dataset.tasks["mood"].labels == ("1", "2", "true")


@pytest.mark.parametrize(
    "labels",
    [["2", "²"], ["1.1", "1.10"], ["1", "①"], ["7", "007"], ["+", "-"], ["--1", "1"], ["е", "e"]],
)
def test_other_labels_stay_apart(labels: list[str], tmp_path: Path) -> None:
    dataset = made(tmp_path, dialogues(40, labels))
    assert set(dataset.tasks["mood"].labels) == set(labels)
    assert not any("spelling" in note for note in dataset.notes)


def test_a_single_spelling_stays(tmp_path: Path) -> None:
    labels = ["cafe\u0301", "1.0", "True", "x\u200b"]
    dataset = made(tmp_path, dialogues(60, labels))
    assert set(dataset.tasks["mood"].labels) == set(labels)


def test_listed_labels_keep_their_spelling(tmp_path: Path) -> None:
    listed = {**MOOD, "labels": ["1.0", "cafe\u0301"]}
    dataset = made(tmp_path, dialogues(40, ["1", "café"]), task=listed)
    assert dataset.tasks["mood"].labels == ("1.0", "cafe\u0301")
    assert {label for _, _, label in drawn(dataset)["train"]} == {"1.0", "cafe\u0301"}
    twice = {**MOOD, "labels": ["1.0", "1", "2"]}
    with pytest.raises(DataError, match=r"labels '1' and '1\.0' of the task Own/mood"):
        made(tmp_path, dialogues(40, ["1", "2"]), task=twice)


@pytest.mark.parametrize("label", ["\u200b", "\ufeff", "\u2060\u200d"])
def test_labels_that_cannot_be_seen_are_refused(label: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"own.jsonl:1: The label .* no visible character"):
        made(tmp_path, dialogues(30, [label, "b", "c"]))


@pytest.mark.parametrize(
    "labels",
    [
        ["²", "³"],
        ["--1", "-1"],
        ["9" * 5000, "8" * 5000],
        ["1", "x" * 5000],
        ["yes", "no"],
        ["null", "~"],
        ["1e3", "0x10"],
        ["٣", "٤"],
        ["a\nb", "c"],
        ["-", "?", "!", "&a", "*a", "#x", "a: b"],
        ["2020-01-01", "12:30"],
        [float("1e300"), -1e-300],
        [10**30, -(10**30)],
    ],
)
def test_odd_labels_are_read(labels: list[Any], tmp_path: Path) -> None:
    dataset = made(tmp_path, dialogues(60, labels))
    assert len(dataset.tasks["mood"].labels) == len(labels)
    checked = check_files([tmp_path / "own.jsonl"], "Own")
    assert not checked.problems


def test_many_labels_are_refused_or_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="more than 1,000 labels"):
        made(tmp_path, dialogues(10_000, [f"label {n}" for n in range(10_000)]))


def test_a_label_that_tables_write_for_a_missing_value_is_noted(tmp_path: Path) -> None:
    made(tmp_path, dialogues(60, ["nan", "b", "c"]))
    checked = check_files([tmp_path / "own.jsonl"], "Own")
    assert any("'nan' (20) may mean a missing answer" in note for note in checked.notes)


def test_merging_is_the_same_in_any_order() -> None:
    labels = ["1.0", "cafe\u0301", "1", "café", "x"]
    assert merge_spellings(labels) == merge_spellings(labels[::-1])
    assert normalise_label("²") == "²" and normalise_label(" \u200b ") == ""
