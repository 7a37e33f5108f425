"""Jobs that Snakemake runs again after files were deleted, damaged or left incomplete.

Changes of times, names or code alone must not start jobs. The trainings only touch files.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from dag_study import ROOT, A, B, C, Sandbox, records, touch_later

of_each_kind = pytest.mark.parametrize(
    "kind", [pytest.param("baseline", marks=pytest.mark.slow), "finetune"]
)


def copy_checkout(folder: Path, *more: str) -> Path:
    """Copy the workflow and further files of the checkout, and return their folder."""
    copy = folder / "copy"
    copy.mkdir()
    for name in ("Snakefile", "workflow", "envs", *more):
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, copy)
        else:
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    return copy


def test_comments_and_documents_start_nothing(study: Sandbox) -> None:
    """Every source file of the checkout gets a comment and is newer than all results."""
    copy = copy_checkout(study.folder, "README.md", "src")
    touched = [path for path in copy.rglob("*") if path.suffix in (".py", ".smk", ".md", "")]
    for path in filter(Path.is_file, touched):
        path.write_text(path.read_text() + "\n# A comment.\n")
        touch_later(path)
    assert len(touched) > 50
    before = records(study)
    snakefile = ("--snakefile", str(copy / "Snakefile"))
    assert study.run(*snakefile, PYTHONPATH=str(copy / "src")) == {}
    assert records(study) == before


@of_each_kind
def test_a_deleted_record_is_made_again_and_nothing_else(study: Sandbox, kind: str) -> None:
    record = next(p for p in study.paths(kind, "metrics.json") if "+" not in p.parents[1].name)
    record.unlink()
    assert study.run() == {kind: 1, "collect": 1}
    assert record.exists()


@of_each_kind
def test_a_damaged_record_is_trained_again_and_never_complete(study: Sandbox, kind: str) -> None:
    record = next(p for p in study.paths(kind, "metrics.json") if "+" not in p.parents[1].name)
    content, ahead = record.read_text(), time.time() + 1000
    record.write_text(content[:500])
    os.utime(record, (ahead, ahead))  # as by a clock that is ahead
    stage = f"{kind}/DailyDialog/tiny-bert/{record.parts[-3]}/"
    for _ in range(2):  # whenever it fails
        done = study.call("--retries", "0", FAKE_FAIL=stage)
        assert done.returncode != 0
        assert f"{record.relative_to(study.folder)}: The record is not valid JSON" in done.stderr
    assert record.read_text() == content[:500]  # the trainer sets it aside
    assert study.run() == {kind: 1, "collect": 1}
    assert record.read_text() == content
    assert study.run() == {}


def test_tables_with_holes_are_collected_again(study: Sandbox) -> None:
    """Tables from `figures_now` are newer than all records."""
    holes = study.folder / "results" / "logs" / "missing.log"
    holes.write_text("written by collect\n")
    assert study.run() == {"collect": 1}
    holes.unlink()
    assert study.run() == {}


def test_a_deleted_record_behind_a_temporary_checkpoint_costs_its_parent(study: Sandbox) -> None:
    record = next(p for p in study.paths("finetune", "metrics.json") if "+" in p.parents[1].name)
    record.unlink()
    assert study.run() == {"multitask": 1, "finetune": 1, "collect": 1}
    assert study.paths("multitask", "checkpoint") == []


def test_caches_made_again_start_no_training(study: Sandbox) -> None:
    caches = [study.folder / "results" / "data", study.folder / "results" / "models"]
    for cache in caches:
        for path in [cache, *cache.rglob("*")]:
            touch_later(path)
    assert study.run() == {}
    for cache in caches:
        shutil.rmtree(cache)
    assert study.run() == {}


def test_parents_made_again_start_no_training(study: Sandbox) -> None:
    for path in study.paths("baseline", "checkpoint"):
        touch_later(path)
    assert study.run() == {}


def test_deleted_caches_are_made_again_for_new_trainings_only(study: Sandbox) -> None:
    shutil.rmtree(study.folder / "results" / "data")
    shutil.rmtree(study.folder / "results" / "models")
    study.write(seeds=2)
    assert study.run() == {"baseline": 2, "multitask": 1, "finetune": 4, "collect": 1}


def test_deleted_checkpoints_are_made_again_where_a_new_training_starts(study: Sandbox) -> None:
    for path in study.paths("baseline", "checkpoint"):
        shutil.rmtree(path)
    assert study.run() == {}
    study.write(datasets={"DailyDialog": {"tasks": [A, B, C]}})
    # Both old baselines and the new one run, but not the finished trainings that start from them.
    assert study.run() == {"baseline": 3, "multitask": 2, "finetune": 8, "collect": 1}


def test_tables_and_figures_come_from_records_alone(study: Sandbox) -> None:
    for folder in ("data", "models", "tables", "figures"):
        shutil.rmtree(study.folder / "results" / folder)
    shutil.rmtree(study.folder / ".snakemake")
    assert study.run("figures") == {"collect": 1}
    assert (study.folder / "results" / "report.html").exists()
    assert not (study.folder / "results" / "data").exists()


def test_triggers_that_would_repeat_trainings_are_refused(study: Sandbox) -> None:
    done = study.call("--rerun-triggers", "mtime", "params", "input")
    assert done.returncode != 0
    assert "use the profile in profiles/default" in done.stdout + done.stderr


def test_names_and_code_start_no_training(study: Sandbox) -> None:
    study.write(study="another name")
    assert study.run() == {"collect": 1}
    # A copy of the workflow with other shell commands: the trigger `code` is off.
    copy = copy_checkout(study.folder)
    rules = copy / "workflow" / "rules" / "train.smk"
    before = rules.read_text()
    rules.write_text(before.replace('"tasktransfer train', '"true && tasktransfer train'))
    assert rules.read_text() != before
    assert study.run("--snakefile", str(copy / "Snakefile")) == {}


def test_tables_follow_the_records(study: Sandbox) -> None:
    (study.folder / "results" / "tables" / "transfer_runs.parquet").unlink()
    assert study.run() == {"collect": 1}


def test_one_failure_stops_what_depends_on_it_only(study: Sandbox) -> None:
    study.write(seeds=[3])
    done = study.call(FAKE_FAIL="baseline/DailyDialog/tiny-bert/ER/")
    assert done.returncode != 0
    assert "asked to fail" in done.stderr  # the job's log
    assert "Cannot restore" not in done.stderr
    made = [p for p in study.paths("", "metrics.json") if "seed3" in str(p)]
    assert len(made) == 7 - 2
    before = (study.folder / "results/tables/runs.parquet").stat().st_mtime_ns
    assert study.run("figures_now") == {"collect": 1}
    assert (study.folder / "results/tables/runs.parquet").stat().st_mtime_ns > before
    assert study.run() == {"baseline": 1, "finetune": 1, "collect": 1}


def test_a_stopped_training_is_started_over(study: Sandbox) -> None:
    study.write(seeds=[4])
    assert study.call(FAKE_FAIL="finetune/DailyDialog/tiny-bert/DNLI_from_DNLI+ER").returncode != 0
    # Its temporary parent still exists, and is removed when it is done.
    assert len(study.paths("multitask", "checkpoint")) == 1
    assert study.run() == {"finetune": 1, "collect": 1}
    assert study.paths("multitask", "checkpoint") == []
