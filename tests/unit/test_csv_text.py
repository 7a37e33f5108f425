"""Tables as CSV, Markdown, LaTeX and HTML, with any names and labels."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tasktransfer.present.columns import Head
from tasktransfer.present.html import HtmlTable, hash_text, write_fragment
from tasktransfer.present.printed import (
    Layout,
    escape_latex,
    to_csv,
    to_latex,
    to_markdown,
    write_table,
)

FORMULAS = [
    "=1+1",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-1+1",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =1",
    '=HYPERLINK("http://x")',
    "\uff1d1+1",
    "-",
    "-inf",
    "+cmd",
    "-2.5 or less",
]
NUMBERS = ["-3.5", "+2.0", "-1e-05", "+1,000", "-.5", "7", "-0"]
ROOT = Path(__file__).resolve().parents[2]


def read_back(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text), strict=True))


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_begins_as_a_formula(text: str) -> None:
    frame = pd.DataFrame({"label": [text, "plain"], text: [1, 2]})
    for kind in (object, "string", "category"):
        rows = read_back(to_csv(frame.astype({"label": kind})))
        assert len(rows) == 3
        assert rows[1][0].startswith("'")
        assert rows[0][1].startswith("'")
        assert rows[1][0][1:] == text.replace("\r", "\n")
        assert rows[2] == ["plain", "2"]


def test_a_line_end_within_a_text_begins_no_row() -> None:
    (_, row) = read_back(to_csv(pd.DataFrame({"label": ["a\r=1"], "n": [1]})))
    assert row == ["a\n=1", "1"]


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_stay_numbers(text: str) -> None:
    assert read_back(to_csv(pd.DataFrame({"n": [text]})))[1] == [text]


def test_frames_without_formulas_are_as_pandas_writes_them() -> None:
    frame = pd.DataFrame(
        {
            "score": [-3.5, 2.0, float("nan")],
            "count": [-1, 0, 1],
            "is_real": [True, False, True],
            "mixed": ["a", None, -1.25],
            "when": pd.to_datetime(["2026-01-01"] * 3),
            "list": [["=1"], [], ["b"]],
        }
    )
    assert to_csv(frame) == frame.to_csv(index=False, lineterminator="\n")


def test_every_table_is_written_by_this_module() -> None:
    """Code that writes CSV with pandas or directly fails this test."""
    allowed = {
        "present/printed.py",
        "datasets/guess/names.py",  # a command for the user
        "designs/empathetic/sources/download.py",  # dialogues in the format of a corpus
        "designs/empathetic/sources/tiny.py",
    }
    source = ROOT / "src" / "tasktransfer"
    writes = re.compile(r"\.to_csv\(|csv\.writer\(|DictWriter\(")
    found = {
        file.relative_to(source).as_posix()
        for file in source.rglob("*.py")
        if writes.search(file.read_text(encoding="utf-8"))
    }
    assert found == allowed


def test_a_printed_table_has_no_formula(tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": ["=1+1"], "delta": [-0.5]})
    write_table(tmp_path, "table", frame, None, "caption")
    assert (tmp_path / "table.csv").read_text() == "label,delta\n'=1+1,-0.5\n"


def layout(*cells: str) -> Layout:
    return Layout(tuple(cells), len(cells), (((tuple(cells),),),))


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("a|b", "a\\|b"),
        ("a\\|b", "a\\\\\\|b"),
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("![x](http://tracker)", "![x]\\(http://tracker)"),
        ("&lt;b&gt;", "&amp;lt;b&amp;gt;"),
        ("R&D", "R&D"),
        ("a\r\nb", "a  b"),
        ("\x1b[2J\u202e", "\\x1b[2J\\u202e"),
        ("[1.0, 2.0]", "[1.0, 2.0]"),
    ],
)
def test_markdown_shows_a_cell_as_it_is(cell: str, shown: str) -> None:
    line = to_markdown(layout(cell, "next"), "caption").splitlines()[-1]
    assert line == f"| {shown} | next |"


def test_latex_has_no_control_characters() -> None:
    text = to_latex(layout("a\rb\x00\x1b\u202e", "\tc"), "caption", "name")
    assert all(character.isprintable() or character == "\n" for character in text)
    assert escape_latex("\x1b") == "\\textbackslash{}x1b"


def test_a_fragment_has_the_policy_of_the_report(tmp_path: Path) -> None:
    heads: Any = [Head("label", "word")]
    evil = "<script>alert(1)</script>"
    table = HtmlTable("t", evil, evil, heads, [[[evil]]], note=evil, notes=[evil], badges=evil)
    text = write_fragment(tmp_path / "t.html", table).read_text()
    assert "<script" not in text
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert f"style-src '{hash_text(style)}'" in policy
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert "style=" not in text
