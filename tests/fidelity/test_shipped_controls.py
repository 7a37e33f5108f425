"""The matrix's best cells and their controls agree with docs/transfer.md."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from shipped_records import list_lines, merged, signed
from transfer_frames import write_collected_tables, write_statistics

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "transfer.md").read_text().split("### Do the gains come from")[1]
CONTROLS = PAGE.split("### Larger models")[0]


def printed(values: pd.Series) -> str:
    """Format one number, or the range from lowest to highest, as on the page."""
    return " to ".join(dict.fromkeys(map(signed, (min(values), max(values)))))


@pytest.fixture(scope="module")
def controls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the tables from records alone."""
    folder = tmp_path_factory.mktemp("controls") / "results"
    study = merged("minilm-controls.parquet", "minilm-controls.yaml", folder)
    write_collected_tables(study, complete=True)
    write_statistics(study)
    return Path(study.tables)


def test_the_pages_table_is_of_these_controls(controls: Path) -> None:
    held = pd.read_parquet(controls / "controls.parquet")
    cells = pd.read_parquet(controls / "cells.parquet")
    expected = []
    for (dataset, target), rows in held.groupby(["dataset", "target"]):
        of = rows.set_index("control")["control_delta"]
        best = cells[(cells["dataset"] == dataset) & (cells["target"] == target)]["delta"].max()
        numbers = [
            printed(of[[control]])
            for control in ("self_transfer", "longer_baseline", "shuffled_source")
        ]
        name = str(target).replace("_", " ")
        expected.append([f"{name} ({dataset})", printed(pd.Series([best])), *numbers])
    lines = list_lines(CONTROLS, r"^\| \w.* \((?:DailyDialog|Friends)\) \|.*\|$")
    assert sorted(lines) == sorted(expected)


def test_no_difference_to_a_control_is_sure(controls: Path) -> None:
    held = pd.read_parquet(controls / "controls.parquet")
    assert f"None of the {len(held)} differences" in " ".join(CONTROLS.split())
    assert not (held["q"] <= 0.05).any()
    assert set(held["verdict"]) == {"cannot tell"}
