"""The demo's records, as they were packed once, still make the tables that they made then."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from tasktransfer.cli import main

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = ROOT / "tests" / "fixtures" / "demo.zip"
PACK = "demo.parquet"
NO_NUMBERS = ["inputs"]
"""Columns that say of what a row is made, for whoever makes it again."""


class Demo(NamedTuple):
    """The fixture's folder, and the results folder with the tables made again."""

    before: Path
    after: Path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The pack merged into an empty folder, without dialogues and models."""
    folder = tmp_path_factory.mktemp("demo")
    before = folder / "before"
    with zipfile.ZipFile(FIXTURE) as archive:
        archive.extractall(before)
    shutil.copy2(ROOT / "workflow" / "presets" / "demo.yaml", folder / "study.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        commands = (["merge", str(before / PACK)], ["collect", "--complete"], ["statistics"])
        for command in commands:
            assert main([*command, "--config", "study.yaml"]) == 0, command
    return Demo(before, folder / "results" / "demo")


def test_every_record_is_there_as_it_was_packed(demo: Demo) -> None:
    rows = pd.read_parquet(demo.before / PACK).set_index("digest")["record"]
    packed = rows[rows != ""].map(json.loads)  # others are tables
    files = [json.loads(path.read_text()) for path in demo.after.rglob("metrics.json")]
    assert {record["node"]["digest"] for record in files} == {*packed.index}
    for record in files:
        assert record["results"] == packed[record["node"]["digest"]]["results"]


def tables() -> list[str]:
    with zipfile.ZipFile(FIXTURE) as archive:
        return sorted(name for name in archive.namelist() if name.startswith("tables/"))


@pytest.mark.parametrize("name", tables())
def test_every_table_has_the_same_numbers(demo: Demo, name: str) -> None:
    before, after = pd.read_parquet(demo.before / name), pd.read_parquet(demo.after / name)
    before = before.drop(columns=NO_NUMBERS, errors="ignore")
    pd.testing.assert_frame_equal(after[list(before)], before, check_exact=True)
