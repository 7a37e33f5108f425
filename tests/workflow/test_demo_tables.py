"""The packed records of the demos still give the tables that were packed with them."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from tasktransfer.cli import main

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
DEMOS = ("demo", "empathetic-demo", "panel-demo", "probes-demo")
"""Presets, each with a zip file of a pack and its tables."""
SLOW = {"panel-demo", "probes-demo"}
"""Demos whose statistics take half a minute."""
PACK = "demo.parquet"
P_VALUES = ("p", "q", "joint_p", "joint_q")
NO_NUMBERS = ["inputs"]
"""Columns that describe the inputs of a row, for recomputing it."""
RENAMED = {
    "asked": "requested",
    "drawn_low": "bootstrap_low",
    "drawn_high": "bootstrap_high",
}
"""Column of a packed table → its present name."""


class Demo(NamedTuple):
    """The fixture's folder, and the results folder with the recomputed tables."""

    before: Path
    after: Path


Made = Callable[[str], Demo]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return name of a demo → its pack merged into an empty folder, without data and models."""
    demos: dict[str, Demo] = {}

    def make(name: str) -> Demo:
        folder = tmp_path_factory.mktemp(name)
        before = folder / "before"
        with zipfile.ZipFile(FIXTURES / f"{name}.zip") as archive:
            archive.extractall(before)
        shutil.copy2(ROOT / "workflow" / "presets" / f"{name}.yaml", folder / "study.yaml")
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            commands = (["merge", str(before / PACK)], ["collect", "--complete"], ["statistics"])
            for command in commands:
                assert main([*command, "--config", "study.yaml"]) == 0, command
        (results,) = (folder / "results").iterdir()
        return Demo(before, results)

    def once(name: str) -> Demo:
        if name not in demos:
            demos[name] = make(name)
        return demos[name]

    return once


def _case(name: str, *more: str) -> Any:
    return pytest.param(name, *more, marks=[pytest.mark.slow] if name in SLOW else [])


@pytest.mark.parametrize("name", [_case(name) for name in DEMOS])
def test_every_record_is_there_as_it_was_packed(made: Made, name: str) -> None:
    demo = made(name)
    rows = pd.read_parquet(demo.before / PACK).set_index("digest")["record"]
    packed = rows[rows != ""].map(json.loads)  # rows without a record are tables
    files = [json.loads(path.read_text()) for path in demo.after.rglob("metrics.json")]
    assert {record["node"]["digest"] for record in files} == {*packed.index}
    for record in files:
        assert record["results"] == packed[record["node"]["digest"]]["results"]


def tables() -> list[Any]:
    found = []
    for name in DEMOS:
        with zipfile.ZipFile(FIXTURES / f"{name}.zip") as archive:
            found += [_case(name, file) for file in sorted(archive.namelist()) if file != PACK]
    return found


@pytest.mark.parametrize(("name", "table"), tables())
def test_every_table_has_the_same_numbers(made: Made, name: str, table: str) -> None:
    demo = made(name)
    before, after = pd.read_parquet(demo.before / table), pd.read_parquet(demo.after / table)
    before = before.drop(columns=NO_NUMBERS, errors="ignore").rename(columns=RENAMED)
    # Since Python 3.12 `sum` adds floats more exactly, so sums of hours differ in the last bit.
    # The last bits of means and intervals depend on the processor.
    exact, tails = [c for c in before if c not in P_VALUES], [c for c in before if c in P_VALUES]
    pd.testing.assert_frame_equal(after[exact], before[exact], rtol=1e-12, atol=0)
    pd.testing.assert_frame_equal(after[tails], before[tails], rtol=1e-12, atol=0)
