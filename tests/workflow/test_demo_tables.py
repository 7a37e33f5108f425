"""The demo's records of schema 1 still make the tables that they made when they were written."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from tasktransfer.designs import open_study

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = ROOT / "tests" / "fixtures" / "demo_schema_1.zip"
TRAININGS = 51
INTERVALS = {
    "cells": ["standard_error", "degrees", "low", "high", "p", "q", "significant", "inputs"],
    "asymmetry": ["low", "high", "p", "q"],
}
"""What has changed since: whole dialogues are drawn, and one seed is not significant."""
RENAMED = {"improvement": "positive", "improvement_low": "positive_low"}
RENAMED |= {"improvement_high": "positive_high"}
"""Columns of ``summary``."""


class Demo(NamedTuple):
    """The results folder as the fixture has it, and as it is after a run of today's workflow."""

    before: Path
    after: Path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Tables and figures made again of the fixture's records, which nothing may touch."""
    folder = tmp_path_factory.mktemp("demo")
    before, after = folder / "before", folder / "results" / "demo"
    with zipfile.ZipFile(FIXTURE) as archive:
        archive.extractall(before)
    shutil.copytree(before / "stages", after / "stages")
    shutil.copy2(ROOT / "workflow" / "presets" / "demo.yaml", folder / "study.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        study = open_study("study.yaml", need_inputs=False)
        # A finished study asks for no data; Table 1, lengths and overlap are made where it is.
        data = [f"{study.instances(name)}/manifest.json" for name in study.config.dataset_names]
    call(folder, *data)
    call(folder)
    return Demo(before, after)


def call(folder: Path, *targets: str) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "snakemake", *targets),
            *("--cores", "2", "--snakefile", ROOT / "Snakefile"),
            *("--workflow-profile", ROOT / "profiles" / "default"),
            *("--max-jobs-per-timespan", "100/1s", "--configfile", "study.yaml"),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def names(pattern: str) -> list[str]:
    with zipfile.ZipFile(FIXTURE) as archive:
        return sorted(name for name in archive.namelist() if Path(name).match(pattern))


def test_nothing_is_trained_and_no_record_is_touched(demo: Demo) -> None:
    records = names("metrics.json")
    assert len(records) == TRAININGS
    assert sorted(str(p.relative_to(demo.after)) for p in demo.after.rglob("metrics.json")) == (
        records
    )
    for name in [*records, *names("predictions.parquet")]:
        assert (demo.after / name).read_bytes() == (demo.before / name).read_bytes(), name


@pytest.mark.parametrize("name", names("tables/*.parquet"))
def test_every_table_has_the_same_numbers(demo: Demo, name: str) -> None:
    before, after = pd.read_parquet(demo.before / name), pd.read_parquet(demo.after / name)
    table = Path(name).stem
    before = before.drop(columns=INTERVALS.get(table, []))
    before = before.rename(columns=RENAMED if table == "summary" else {})
    pd.testing.assert_frame_equal(after[list(before)], before, check_exact=True)


def test_dialogues_of_older_predictions_come_from_the_prepared_data(demo: Demo) -> None:
    cells = pd.read_parquet(demo.after / "tables" / "cells.parquet")
    assert set(cells["resampled_by"]) == {"dialogue"}
    assert (cells["dialogues"] <= cells["instances"]).all()
    assert (cells["dialogues"] < cells["instances"]).any()


@pytest.mark.parametrize(
    "name", [*names("figures/*.csv"), *names("figures/*.md"), *names("figures/*.tex")]
)
def test_every_printed_table_has_the_same_text(demo: Demo, name: str) -> None:
    assert (demo.after / name).read_text() == (demo.before / name).read_text()
