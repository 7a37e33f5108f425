"""The demo's records of schema 2 still make the tables that they made when they were written."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.collect.planned import StudyPlan, study_plan
from tasktransfer.designs.transfer.collect.store import collect
from tasktransfer.designs.transfer.figures.draw import draw
from tasktransfer.designs.transfer.statistics.study_statistics import compute
from tasktransfer.results.study import Study

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = ROOT / "tests" / "fixtures" / "demo_schema_2.zip"
TRAININGS = 51
NO_NUMBERS = ["inputs"]
"""Columns that say of what a row is made, for whoever makes it again."""


class Demo(NamedTuple):
    """The results folder as the fixture has it, and as it is with the tables made again."""

    before: Path
    after: Path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Tables of the fixture's records. The plan is today's, of the records of then: some of its
    trainings have a later recipe."""
    folder = tmp_path_factory.mktemp("demo")
    before, after = folder / "before", folder / "results" / "demo"
    with zipfile.ZipFile(FIXTURE) as archive:
        archive.extractall(before)
    shutil.copy2(ROOT / "workflow" / "presets" / "demo.yaml", folder / "study.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        study = open_study("study.yaml", need_inputs=False)
        make_data(folder, study)
        shutil.copytree(before / "stages", after / "stages")
        plan = plan_of_then(study, before / "tables" / "runs.parquet")
        collect(Path(study.config.results), plan, Path(study.tables), complete=True)
        compute(study.tables, study.config.results)
        draw(Path(study.tables), Path(study.figures))
    return Demo(before, after)


def plan_of_then(study: Study, runs: Path) -> StudyPlan:
    """The study's runs with the records that the fixture's table of runs names."""
    plan, rows = study_plan(study, study.plan), pd.read_parquet(runs)
    keys = ["dataset", "model", "algorithm", "source", "target", "seed"]
    then = rows.set_index(keys)[["path", "digest"]].to_dict("index")
    of_then = (
        replace(run, record=then[run.key]["path"], digest=then[run.key]["digest"], stages=())
        for run in plan.runs
    )
    return replace(plan, runs=tuple(of_then))


def make_data(folder: Path, study: Study) -> None:
    """What is known of the dialogues, which Table 1, the overlap and what stands beside the
    baselines are made of. It is asked for before the records are there: a finished study without
    its dialogues does without."""
    data = [f"{study.instances(name)}/manifest.json" for name in study.config.dataset_names]
    data += [f"{study.tables}/{name}.parquet" for name in ("overlap_data", "reference")]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "snakemake", *data),
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


def test_no_record_is_touched(demo: Demo) -> None:
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
    before = before.drop(columns=NO_NUMBERS, errors="ignore")
    pd.testing.assert_frame_equal(after[list(before)], before, check_exact=True)


def test_whole_dialogues_are_drawn(demo: Demo) -> None:
    """Which are named in a column that is called otherwise now."""
    cells = pd.read_parquet(demo.after / "tables" / "cells.parquet")
    assert set(cells["resampled_by"]) == {"dialogue"}
    assert (cells["dialogues"] <= cells["instances"]).all()
    assert (cells["dialogues"] < cells["instances"]).any()


@pytest.mark.parametrize(
    "name", [*names("figures/*.csv"), *names("figures/*.md"), *names("figures/*.tex")]
)
def test_every_printed_table_has_the_same_text(demo: Demo, name: str) -> None:
    assert (demo.after / name).read_text() == (demo.before / name).read_text()
