"""Labels, columns and names with a meaning in YAML, a terminal, a shell or Python.

The check of data reads or refuses them, and never fails.
"""

from __future__ import annotations

import csv
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasktransfer.datasets.declared.check import check_files
from tasktransfer.datasets.declared.reader import build_dataset
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.errors import DataError, escape_text

Row = dict[str, Any]

ODD = {
    "YAML words": ("yes", "no", "null", "~", "on", "True", "NaN", "inf", ".inf", "<<", "="),
    "YAML numbers": ("1e3", "0x10", "0o7", "010", "1_000", "1:30", "-0", "+1", "1."),
    "YAML marks": ("a: b", "#x", "- a", "?b", "!c", "&d", "*e", "%f", "@g", "`h", "[i", "{j", "|"),
    "YAML lines": ("z\n  missing: skip #", "a\r\nb", "---", "...", "\\n", "'q'", '"q"'),
    "dates": ("2020-01-01", "2022-99-99", "12:30:45"),
    "terminal": ("\x1b[31mred", "\x1b]0;t\x07", "a\rb", "a\bb", "\x9b1m", "\x00", "\x7f"),
    "direction": ("\u202eabc", "\u2066a", "\u200fa", "\u061ca"),
    "no width": ("\u200b", "a\u200b", "\ufeffx", "\u2060", "a\u00adb", "\u2028", "\x85"),
    "numerals": ("²", "①", "½", "٣", "--1", "9" * 5000, "1e999", "-"),
    "scripts": ("é", "e\u0301", "日本語", "😀", "👨\u200d👩", "ß", "İ", "ǅ", "ﬁ"),
    "shell": ("$HOME", "`ls`", "a; b", "../x", "/etc/passwd", "~root", "-rf", "a|b", "a>b"),
    "templates": ("{0}", "{x}", "{{", "%s", "%(x)s", "<b>", "&amp;", "\\", "{label}"),
    "Python": ("__class__", "None", "[1, 2]", "{'a': 1}", "1 2", "0"),
    "keys of a config": ("id", "text", "label", "shares", "files", "tasks", "speaker", "turns"),
    "blanks": (" lead", "trail ", "", " ", "a  b", "\ta"),
    "long": ("x" * 101, "y" * 3000, "word " * 300),
}


def rows_with_label(odd: str) -> list[Row]:
    return [
        {"text": f"it is number {n} of many", "mood": (odd, "b", "c")[n % 3]} for n in range(30)
    ]


def rows_with_column(odd: str) -> list[Row]:
    return [{"text": f"it is number {n} of many", odd: "abc"[n % 3]} for n in range(30)]


def rows_with_turns(odd: str) -> list[Row]:
    return [
        {
            "name": odd if n == 7 else f"d{n}",
            "turns": [{"who": odd, "said": f"it is number {n}", odd: "xy"[n % 2]}] * 2,
        }
        for n in range(30)
    ]


def as_lines(rows: list[Row]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def write_cells(rows: list[Row], file: Path) -> None:
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerows([list(rows[0]), *(list(row.values()) for row in rows)])


def refuse_surprises(file: Path) -> None:
    """Check a file; every guess can be read, in YAML that is safe to print and to read back."""
    with suppress(DataError):
        checked = check_files([file], "Own")
        assert checked.text == escape_text(checked.text)
        declared = yaml.safe_load(checked.text)["datasets"]["Own"]
        if not checked.problems:
            build_dataset("Own", Declaration.model_validate(declared), None)


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("rows", [rows_with_label, rows_with_column, rows_with_turns])
def test_odd_texts_are_read_or_refused(kind: str, rows: Any, tmp_path: Path) -> None:
    for number, odd in enumerate(ODD[kind]):
        file = tmp_path / f"own{number}.jsonl"
        file.write_text(as_lines(rows(odd)))
        refuse_surprises(file)


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("rows", [rows_with_label, rows_with_column])
def test_odd_cells_are_read_or_refused(kind: str, rows: Any, tmp_path: Path) -> None:
    for number, odd in enumerate(ODD[kind]):
        file = tmp_path / f"own{number}.csv"
        write_cells(rows(odd), file)
        refuse_surprises(file)


@pytest.mark.parametrize(
    ("values", "forms", "label"),
    [
        ((1, 1.0, "1"), "1, 1.0, '1'", "1"),
        (("glad", "glad ", " glad"), "' glad', 'glad ', 'glad'", "glad"),
        ((True, "true", True), "True, 'true'", "true"),
    ],
)
def test_several_ways_to_write_a_label_are_one_with_a_note(
    values: tuple[Any, ...], forms: str, label: str, tmp_path: Path
) -> None:
    path = tmp_path / "train.jsonl"
    rows = [
        {"text": f"it is number {n} of many", "mood": (*values, "other")[n % 4]} for n in range(40)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    checked = check_files([path], "own")
    assert not checked.problems
    assert f"mood: {forms} are read as one label, {label!r}" in checked.notes
    assert f"{label} (30)" in checked.text


def test_one_way_to_write_a_label_needs_no_note(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    rows = [{"text": f"it is number {n} of many", "mood": ("a ", 2)[n % 2]} for n in range(40)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert not [note for note in check_files([path], "own").notes if "one label" in note]
