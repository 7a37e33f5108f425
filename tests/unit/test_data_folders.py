"""``tasktransfer data check FOLDER``: its files by split, or a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from declared_files import dialogue, lines
from test_data_check import declared, world

from tasktransfer.datasets.declared.check import check_files
from tasktransfer.errors import DataError


def fill(folder: Path, *files: str) -> Path:
    """Write dialogues into files of a folder, and return the folder."""
    for number, file in enumerate(files):
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = world() if not number else [dialogue(f"f{number}", n) for n in range(3)]
        path.write_text(lines(rows) if path.suffix == ".jsonl" else "# a note\n")
    return folder


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["chats.jsonl", "README.md"], {"train": "chats.jsonl"}),
        (["train.jsonl", "validation.jsonl"], {"train": "train.jsonl", "dev": "validation.jsonl"}),
        (["train/0.jsonl", "test/0.jsonl"], {"train": "train/0.jsonl", "test": "test/0.jsonl"}),
        (["train.jsonl", "train.py", ".hidden.jsonl"], {"train": "train.jsonl"}),
    ],
    ids=["one file", "a file per split", "a folder per split", "other files"],
)
def test_files_of_a_folder_are_read(
    files: list[str], expected: dict[str, str], tmp_path: Path
) -> None:
    folder = fill(tmp_path / "mine", *files)
    checked = check_files([folder], "Own")
    assert checked.problems == []
    found = {split: str(folder / file) for split, file in expected.items()}
    assert declared(checked)["files"] == found


def test_a_folder_of_other_files_has_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"found 2 readable files, .*a\.jsonl.*mine/\*\.jsonl"):
        check_files([fill(tmp_path / "mine", "a.jsonl", "b.jsonl")], "Own")
    with pytest.raises(DataError, match=r"no file that can be read \(it contains x/\)\. Save"):
        check_files([fill(tmp_path / "texts", "x/1.txt")], "Own")


def test_absent_labels_are_counted(tmp_path: Path) -> None:
    test = [row for row in (dialogue("t", n) for n in range(9)) if row["intent"] == "login"]
    (tmp_path / "train.jsonl").write_text(lines(world()))
    (tmp_path / "test.jsonl").write_text(lines(test))
    notes = check_files([tmp_path], "Own").notes
    said = "intent: 2 of 3 labels never occur in test, so test scores say nothing about them"
    (note,) = (note for note in notes if said in note)
    assert "billing (" in note and "shipping (" in note and "login" not in note
    (tmp_path / "train.jsonl").write_text(lines([r for r in world() if r["intent"] != "login"]))
    problems = check_files([tmp_path], "Own").problems
    assert any("'login' of intent occurs 3 times in test but never in train" in p for p in problems)
    (tmp_path / "train.jsonl").write_text(lines(world()))
    (tmp_path / "test.jsonl").write_text(
        lines([row for row in (dialogue("t", n) for n in range(9)) if row["intent"] != "login"])
    )
    said = "intent: 1 of 3 labels never occurs in test, so test scores say nothing about it"
    assert any(said in note for note in check_files([tmp_path], "Own").notes)
