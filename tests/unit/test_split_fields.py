"""Fields that name the split of each row: the note's command writes a file for each split."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tasktransfer.datasets.declared.files import assign_splits, check_file
from tasktransfer.datasets.declared.rows import read_rows
from tasktransfer.datasets.guess.columns import collect_columns
from tasktransfer.datasets.guess.names import are_split_names, describe_split_fields

SPLITS = ("train", "train", "validation", "test")
ROWS: list[dict[str, Any]] = [
    {"text": f"it's; text {n}", "about": {"split": SPLITS[n % 4]}} for n in range(8)
]


def write_rows(folder: Path, name: str) -> Path:
    """Write the rows as JSON lines or CSV, beginning with a byte order mark."""
    lines = [json.dumps(row) for row in ROWS]
    if name.endswith(".csv"):
        lines = ["text;split", *(f'"{row["text"]}";{row["about"]["split"]}' for row in ROWS)]
    (folder / name).write_text("\ufeff" + "\n".join(lines) + "\n", encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("name", ["own data.jsonl", "own data.csv"])
def test_the_command_of_the_note_divides_the_file(tmp_path: Path, name: str) -> None:
    path = write_rows(tmp_path, name)
    columns = collect_columns(row.values for row in read_rows(check_file(path, "files")))
    (note,) = describe_split_fields(columns, path)
    field = "split" if name.endswith(".csv") else "about.split"
    assert note.startswith(f"{field} names the split of each row, but is not used. ")
    command = shlex.split(note.partition("`")[2].partition("`")[0])
    assert command[:2] == ["python", "-c"]
    subprocess.run([sys.executable, "-I", *command[1:]], check=True)
    path.unlink()
    splits = assign_splits(sorted(tmp_path.iterdir()))
    texts = {
        split: [row.values["text"] for row in read_rows(check_file(file, "files"))]
        for file, split in splits.items()
    }
    words = {"train": "train", "dev": "validation", "test": "test"}
    assert texts == {
        split: [row["text"] for row in ROWS if row["about"]["split"] == word]
        for split, word in words.items()
    }


def test_other_formats_have_a_note_without_a_command() -> None:
    (note,) = describe_split_fields({"part": ["train", "dev"]}, Path("rows.parquet"))
    assert "`" not in note
    assert list(describe_split_fields({"part": ["train", "late"]}, Path("rows.csv"))) == []


def test_two_words_for_one_split_do_not_name_splits() -> None:
    assert are_split_names(["Train", " test "])
    assert not are_split_names(["dev", "validation"])
