"""The regression check: differences of two results folders are found and named."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from benchmarks.compare_results import MACHINE, compare, main

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
    assert "table2.md: 1 lines differ: 'x' -> 'y'" in told


def test_a_table_without_rows_is_compared(tmp_path: Path) -> None:
    assert "3 rows only before" in differences(tmp_path, ROWS.iloc[:0])


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path), str(tmp_path)])
