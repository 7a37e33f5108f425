"""The regression check: differences of two results folders are found and named."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.compare_reports import compare_reports
from benchmarks.compare_results import MACHINE, Renames, compare, main

ROWS = pd.DataFrame(
    {
        "target": ["a", "b", "b"],
        "seed": [0, 0, 0],
        "score": [1.0, 2.0, float("nan")],
        "seconds": [1.0, 2.0, 3.0],
    }
)


def folders(place: Path, after: pd.DataFrame, printed: str = "x\n") -> tuple[Path, Path]:
    for name, rows, text in (("before", ROWS, "x\n"), ("after", after, printed)):
        (place / name / "tables").mkdir(parents=True)
        (place / name / "figures").mkdir()
        rows.to_parquet(place / name / "tables" / "scores.parquet")
        (place / name / "figures" / "table2.md").write_text(text)
    return place / "before", place / "after"


def differences(place: Path, after: pd.DataFrame, **options: str) -> str:
    found = compare(*folders(place, after, **options), 1e-9, MACHINE)
    return "\n".join(f"{name}: {line}" for name, lines in found.items() for line in lines)


def test_equal_folders_and_columns_of_the_machine_are_no_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shuffled = ROWS.assign(seconds=9.0).iloc[[1, 2, 0]]
    assert main([str(folder) for folder in folders(tmp_path, shuffled)]) == 0
    assert "no difference" in capsys.readouterr().out


def test_a_moved_number_is_named_with_its_row(tmp_path: Path) -> None:
    moved = ROWS.assign(score=[1.0, 2.5, float("nan")])
    assert "column score: 1 of 3 differ, by 0.5: b 0: 2 -> 2.5" in differences(tmp_path, moved)


def test_a_number_that_went_missing_differs(tmp_path: Path) -> None:
    gone = ROWS.assign(score=[1.0, float("nan"), float("nan")])
    assert "1 of 3 differ" in differences(tmp_path, gone)


def test_rows_columns_and_texts_of_one_side_alone_are_named(tmp_path: Path) -> None:
    other = ROWS.assign(target=["a", "b", "c"], q=1.0)
    told = differences(tmp_path, other, printed="y\n")
    assert "column q: only after" in told
    assert "1 rows only before: b 0" in told
    assert "1 rows only after: c 0" in told
    assert "table2.md: text: 2 lines differ (- before, + after)" in told
    assert "table2.md:   - x\n" in told


def test_a_table_without_rows_is_compared(tmp_path: Path) -> None:
    assert "3 rows only before" in differences(tmp_path, ROWS.iloc[:0])


def test_a_tolerance_is_relative_to_large_numbers(tmp_path: Path) -> None:
    for name, score in (("before", 1e6), ("after", 1e6 + 1e-4), ("far", 1e6 + 1e-2)):
        (tmp_path / name / "tables").mkdir(parents=True)
        rows = pd.DataFrame({"target": ["a"], "score": [score]})
        rows.to_parquet(tmp_path / name / "tables" / "scores.parquet")
    assert compare(tmp_path / "before", tmp_path / "after", 1e-9) == {}
    assert compare(tmp_path / "before", tmp_path / "far", 1e-9) != {}
    assert compare(tmp_path / "before", tmp_path / "after", 0.0) != {}


def test_rows_with_equal_keys_may_change_their_order(tmp_path: Path) -> None:
    one = pd.DataFrame({"target": ["a", "a", "b"], "score": [1.0, 2.0, 3.0]})
    before, after = folders(tmp_path, one.iloc[[1, 2, 0]])
    one.to_parquet(before / "tables" / "scores.parquet")
    assert compare(before, after, 0.0) == {}


def test_text_in_a_column_of_numbers_differs(tmp_path: Path) -> None:
    assert "rows only after" in differences(tmp_path, ROWS.assign(score=["1.0", "2.0", None]))


def test_lists_and_missing_values_are_compared_by_value(tmp_path: Path) -> None:
    rows = pd.DataFrame({"seeds": [[0, 1], [2]], "note": [None, "x"], "n": [1, 2]})
    before, after = folders(tmp_path, rows.assign(n=rows["n"].astype("Int64")))
    rows.assign(note=[float("nan"), "x"]).to_parquet(before / "tables" / "scores.parquet")
    assert compare(before, after, 0.0) == {}
    rows.assign(seeds=[[0, 1], [3]]).to_parquet(after / "tables" / "scores.parquet")
    assert "1 rows only after: [3]" in str(compare(before, after, 0.0))


def test_a_renamed_table_and_column_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = folders(tmp_path, ROWS.rename(columns={"score": "value"}))
    (after / "tables" / "scores.parquet").rename(after / "tables" / "values.parquet")
    assert len(compare(before, after, 0.0)) == 2
    names = {"tables": {"scores": "values"}, "columns": {"scores": {"score": "value"}}}
    file = tmp_path / "renames.json"
    file.write_text(json.dumps(names))
    folder = [str(before), str(after), "--renames", str(file)]
    assert main(folder) == 0
    moved = ROWS.rename(columns={"score": "value"}).assign(value=[1.0, 2.5, float("nan")])
    moved.to_parquet(after / "tables" / "values.parquet")
    capsys.readouterr()
    assert main(folder) == 1
    assert "column value: 1 of 3 differ" in capsys.readouterr().out


def test_a_column_can_be_renamed_in_all_tables(tmp_path: Path) -> None:
    before, after = folders(tmp_path, ROWS.rename(columns={"target": "task"}))
    assert compare(before, after, 0.0, (), Renames(columns={"*": {"target": "task"}})) == {}


def test_a_wrong_key_in_the_file_of_renames_is_refused(tmp_path: Path) -> None:
    before, after = folders(tmp_path, ROWS)
    (tmp_path / "renames.json").write_text('{"table": {}}')
    with pytest.raises(SystemExit, match="2"):
        main([str(before), str(after), "--renames", str(tmp_path / "renames.json")])


PAGE = """<html><head><style>p {{}}</style></head><body><h1>A study</h1>
<p>Built {date} by <b>tasktransfer</b> {version} at {commit}.</p><p>{answer}</p>
<h2>Scores</h2><table id="{id}"><tr><th>task</th><th>score</th></tr>
<tr><td>a</td><td>{score}</td></tr></table><img src="data:image/png;base64,{picture}">
<script type="application/json" id="cells">{{"cells": [{{"score": {number}}}]}}</script>
<script>{script}</script></body></html>"""
REPORT = {
    "date": "2026-01-02",
    "version": "0.1.0",
    "commit": "0123abc",
    "answer": "Two of 3 differ.",
    "id": "table1",
    "score": "1.50",
    "picture": "AAAA",
    "number": "1.5",
    "script": "draw()",
}


def reports(place: Path, **changes: str) -> list[str]:
    for name, values in (("before", REPORT), ("after", {**REPORT, **changes})):
        (place / f"{name}.html").write_text(PAGE.format(**values))
    return compare_reports(place / "before.html", place / "after.html", 1e-12)


def test_date_version_commit_picture_and_script_of_a_report_may_change(tmp_path: Path) -> None:
    changes = {
        "date": "2026-02-03T04:05:06Z",
        "version": "0.2.0.dev1",
        "commit": "fedcba9876543210",
    }
    assert reports(tmp_path, **changes, picture="BBBB", script="plot()", id="scores") == []


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"answer": "Two of 4 differ."}, "text: 2 lines differ (- before, + after)"),
        ({"score": "1.51"}, "table table1: 2 lines differ (- before, + after)"),
        ({"score": "1.51", "id": "scores"}, "table table1: only before, 2 rows"),
        ({"number": "1.6"}, "data cells: 1 values differ: /cells/0/score: 1.5 -> 1.6"),
    ],
)
def test_a_change_in_a_report_is_named(tmp_path: Path, changes: dict[str, str], line: str) -> None:
    assert line in reports(tmp_path, **changes)


def test_packs_are_compared_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for pack, after in (("equal", ROWS), ("moved", ROWS.assign(score=[1.0, 2.5, float("nan")]))):
        before, changed = folders(tmp_path / pack, after)
        for side, folder in (("old", before), ("new", changed)):
            target = tmp_path / side / pack / "results" / "study"
            target.parent.mkdir(parents=True)
            folder.rename(target)
    assert main([str(tmp_path / "old"), str(tmp_path / "new")]) == 1
    printed = capsys.readouterr().out
    assert "moved/tables/scores.parquet\n  column score: 1 of 3 differ" in printed
    assert "\nequal: tables: 1 equal; texts: 1 equal\n" in printed
    assert "\nmoved: tables: 0 equal, 1 differ; texts: 1 equal\n" in printed
    (tmp_path / "old" / "moved").rename(tmp_path / "moved away")
    assert main([str(tmp_path / "old"), str(tmp_path / "new")]) == 1
    assert "moved: only after" in capsys.readouterr().out


def test_equal_packs_are_compared_with_their_machine_columns(tmp_path: Path) -> None:
    before, after = folders(tmp_path, ROWS.assign(seconds=9.0))
    for folder in (before, after):
        target = tmp_path / f"{folder.name}s" / "pack" / "results" / "study"
        target.parent.mkdir(parents=True)
        folder.rename(target)
    assert main([str(tmp_path / "befores"), str(tmp_path / "afters")]) == 1


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path), str(tmp_path)])
