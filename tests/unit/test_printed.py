"""Printed tables: the four files, escapes, marks, and comparison with the paper."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasktransfer.designs.transfer import published
from tasktransfer.designs.transfer.published import (
    Correspondence,
    add_published_values,
    find_published_model,
    has_published_values,
)
from tasktransfer.errors import RecordError
from tasktransfer.present.columns import format_table
from tasktransfer.present.numbers import (
    add_sigma,
    format_count,
    format_interval,
    format_number,
    format_p_value,
)
from tasktransfer.present.printed import (
    Layout,
    build_plain_layout,
    escape_latex,
    group_blocks,
    to_latex,
    to_markdown,
    write_table,
)
from tasktransfer.results.frames import NUMBER, TEXT, WHOLES
from tasktransfer.results.store import (
    Metadata,
    build_frame,
    read_frame,
    read_statistic_frame,
    write_frame,
)

REAL = Metadata(study="a_study", config_digest="0", synthetic=False, records=1)
METADATA = Metadata(study="a_study", config_digest="0", synthetic=True, records=1)
NASTY = "a_b 5% #1 {x} ~^\\ & $ | <y> [z] *"


def test_latex_escapes_every_special_character() -> None:
    assert escape_latex("a_b 5% #1 {x} ~^\\ & $ | <") == (
        "a\\_b 5\\% \\#1 \\{x\\} \\textasciitilde{}\\textasciicircum{}\\textbackslash{} \\& \\$ "
        "\\textbar{} \\textless{}"
    )


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (1.005, ".1f", "1.0"),
        (-1.25, "+.2f", "−1.25"),
        (-0.001, "+.2f", "+0.00"),
        (-0.001, ".2f", "0.00"),
        (math.nan, ".2f", "–"),
        (None, ".2f", "–"),
        (102978.0, "+,.0f", "+102,978"),
        (1296.4, ".3g", "1,296"),
        (0.0004, ".3g", "0.0004"),
        (1.73e-05, ".3g", "< 0.0001"),
    ],
)
def test_numbers_have_a_true_minus_and_no_negative_zero(
    value: float | None, form: str, text: str
) -> None:
    assert format_number(value, form) == text


def test_counts_and_spreads() -> None:
    assert (format_count(12345), format_count(-63, signed=True), format_count(math.nan)) == (
        "12,345",
        "−63",
        "–",
    )
    assert add_sigma("50.00", 0.244) == "50.00 (0.24)"
    assert add_sigma("50.00", math.nan) == "50.00"
    assert add_sigma("–", 0.2) == "–"
    assert format_interval(-1.0, 2.0, "+.1f") == "−1.0 to +2.0"
    assert format_interval(math.nan, 2.0, "+.1f") == "–"


@pytest.mark.parametrize(
    ("p", "text"),
    [(1.0, "1.000"), (0.0014, "0.001"), (0.0009, "< 0.001"), (0.0, "< 0.001"), (math.nan, "–")],
)
def test_a_p_below_a_thousandth_is_spelled_in_one_way(p: float, text: str) -> None:
    assert format_p_value(p) == text


def test_tables_of_a_terminal_are_aligned() -> None:
    rows = [
        {"task": "a", "samples": 12345, "hours": 0.5},
        {"task": "longer", "samples": 1, "hours": None},
    ]
    assert format_table(rows) == [
        "task    samples  hours",
        "a        12,345  0.500",
        "longer        1      ?",
    ]
    assert format_table([]) == []


def test_a_table_of_one_s_own_is_written_and_read_back(tmp_path: Path) -> None:
    columns = (
        ("task", TEXT, "task that is scored"),
        ("seeds", WHOLES, "seeds behind the score"),
        ("score", NUMBER, "0-100"),
    )
    frame = build_frame([("a", [0, 1], 50.0), ("b", [], math.nan)], columns)
    path = tmp_path / "scores.parquet"
    write_frame(path, frame, columns, METADATA)
    again, metadata = read_frame(path, columns)
    pd.testing.assert_frame_equal(again, frame)
    assert metadata == METADATA
    assert pq.read_schema(path).field("score").metadata == {b"description": b"0-100"}
    assert build_frame([], columns).dtypes.equals(frame.dtypes)
    with pytest.raises(RecordError, match=r"scores\.parquet: The columns are .*\. Collect again\."):
        read_frame(path, columns[:1], remedy="Collect again")
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(
        RecordError, match=r"scores\.parquet: The file is not a table of tasktransfer"
    ):
        read_frame(path, columns)
    with pytest.raises(RecordError, match=r"none\.parquet: The table cannot be read.*\. Run `"):
        read_frame(tmp_path / "none.parquet", columns)


@pytest.mark.parametrize(
    "footer", [b"[]", b"7", b"{", b'{"unknown": 1}', b'{"study": "s"}', b"\xff", b"[" * 100_000]
)
def test_a_footer_of_something_else_is_refused(footer: bytes, tmp_path: Path) -> None:
    table = pa.table({"task": ["a"]}).replace_schema_metadata({b"tasktransfer": footer})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(RecordError, match="footer is damaged"):
        read_frame(tmp_path / "t.parquet", [("task", TEXT, "a task")])


def test_a_folder_or_other_file_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("text")
    for name in ("folder", "text", "none"):
        with pytest.raises(RecordError, match="cannot be read"):
            read_statistic_frame(tmp_path / name)


def nasty_layout() -> Layout:
    lines = ((NASTY, "[1] **", "−1.00†"), ("*", "", "+0.00‡"))
    return Layout(
        ("Head_1", "σ", "Two\nlines Δ"), 2, group_blocks([("a", lines), ("b", lines[:1])])
    )


def test_markdown_keeps_its_columns_whatever_the_names() -> None:
    lines = to_markdown(nasty_layout(), "Caption.", "Table 9").splitlines()
    assert lines[0] == "**Table 9.** Caption."
    assert lines[2:4] == ["| Head_1 | σ | Two lines Δ |", "|---|---|---:|"]
    assert lines[5] == "| \\* |  | +0.00‡ |"
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines[2:]} == {4}


def test_latex_is_balanced_whatever_the_names() -> None:
    text = to_latex(nasty_layout(), f"Caption {NASTY}", "x")
    bare = text.replace("\\{", "").replace("\\}", "")
    assert bare.count("{") == bare.count("}")
    assert re.findall(r"\\begin\{(\S+?)\}", text) == ["table*", "tabular"]
    assert re.findall(r"\\end\{(\S+?)\}", text) == ["tabular", "table*"]
    rows = [line for line in text.splitlines() if line.endswith("\\\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {2}
    assert len(rows) == 2 + 3  # two rows of heads
    assert text.count("\\midrule") == 2
    # A row that begins with * would be read as a variant of the line break before it.
    assert "\n{}* & " in text
    assert not [character for character in text if ord(character) > 127]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")
def test_latex_compiles(tmp_path: Path) -> None:
    (tmp_path / "one.tex").write_text(to_latex(nasty_layout(), f"Caption {NASTY}", "x"))
    (tmp_path / "all.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs,graphicx}\n"
        "\\begin{document}\\input{one}\\end{document}\n"
    )
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout


def test_a_frame_without_a_layout_is_printed_as_it_is(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"name": ["a", None], "n": [1, 20000], "x": [0.125, math.nan], "yes": [True, False]}
    )
    assert build_plain_layout(frame) == Layout(
        ("name", "n", "x", "yes"),
        1,
        ((((("a", "1", "0.12", "yes"),)), ((("–", "20,000", "–", "no"),))),),
    )
    written = write_table(
        tmp_path / "new", "t", frame, METADATA, "Caption.", described={"n": "how many"}
    )
    assert [path.name for path in written] == ["t.parquet", "t.csv", "t.md", "t.tex"]
    assert {path.name for path in (tmp_path / "new").iterdir()} == {path.name for path in written}
    stored = pq.read_table(written[0])
    assert stored.schema.field("n").metadata == {b"description": b"how many"}
    assert stored.column_names == [*frame.columns, "study", "synthetic"]
    assert pd.read_csv(written[1])["x"][0] == 0.125
    assert written[2].read_text().startswith("Caption.\n")


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    frame = published.read_table2()
    first = {
        path: path.read_bytes() for path in write_table(tmp_path, "t", frame, METADATA, "Caption.")
    }
    write_table(tmp_path, "t", frame, METADATA, "Caption.")
    assert {path: path.read_bytes() for path in first} == first


@pytest.mark.parametrize(
    ("name", "weights", "model"),
    [
        ("bert", None, "BERT"),
        ("BERT", "unknown", "BERT"),
        ("Bert-base-uncased", "sha256:0a", "BERT"),
        ("GPT-2", "sha256:0a", "GPT-2"),
        ("t5-base", "sha256:0a", "T5"),
        ("mine", "sha256:0a", None),
        ("mine", None, None),
        ("mine", "bert-base-uncased@86b5", "BERT"),
        ("mine", "google-bert/bert-base-uncased@main", "BERT"),
        ("mine", "gpt2@607a", "GPT-2"),
        ("mine", "openai-community/gpt2@607a", "GPT-2"),
        ("mine", "google-t5/t5-base@a972", "T5"),
        ("bert", "bert-large-uncased@main", None),
        ("bert", "somebody/bert-base-uncased@main", None),
        ("t5", "t5-small@main", None),
        ("bert", "tiny:0a", None),
    ],
)
def test_which_model_is_the_paper_s(name: str, weights: str | None, model: str | None) -> None:
    assert find_published_model(name, weights) == model


def ours() -> pd.DataFrame:
    rows = [
        ("DailyDialog", "mine", "multitask", 51.0),
        ("DailyDialog", "other", "multitask", 51.0),
        ("DailyDialog", "mine", "another", 51.0),
        ("Friends", "mine", "multitask", math.nan),
    ]
    return pd.DataFrame(rows, columns=["dataset", "model", "algorithm", "average_score"])


def beside(found: Correspondence) -> pd.DataFrame:
    keys = ["dataset", "model", "algorithm"]
    return add_published_values(ours(), published.read_table2(), ["average_score"], keys, found)


def test_only_corresponding_rows_get_a_published_value() -> None:
    both = frozenset(["DailyDialog", "Friends"])
    frame = beside(Correspondence(both, {"mine": "BERT"}, "", REAL))
    assert frame["published_average_score"].fillna(-1).tolist() == [50.95, -1, -1, 42.88]
    assert frame["difference_average_score"][0] == pytest.approx(0.05)
    assert frame["difference_average_score"][1:].isna().all()
    assert has_published_values(frame)
    # One dataset of a study may be full data.
    frame = beside(Correspondence(frozenset(["Friends"]), {"mine": "BERT"}, "", REAL))
    assert frame["published_average_score"].notna().tolist() == [False, False, False, True]


def test_without_any_published_value_there_are_no_columns_for_it() -> None:
    frame = beside(Correspondence(frozenset(["DailyDialog"]), {"mine": "T6"}, "", REAL))
    pd.testing.assert_frame_equal(frame, ours())
    assert not has_published_values(frame)
