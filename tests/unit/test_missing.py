"""The table of missing runs: reasons, and the training to look at."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from study_records import write_records
from tasktransfer.cli import main
from tasktransfer.core.runs import Run
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.results import collect
from tasktransfer.results.state import claim_folder
from tasktransfer.results.study import Study
from transfer_frames import compute_frames

ER, DNLI = "emotion_recognition", "dialogue_nli"
KEYS: dict[str, Any] = {
    "study": "constructed",
    "datasets": {"DailyDialog": {"tasks": [ER, DNLI]}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
    "seeds": 2,
}


@pytest.fixture
def study(here: Path) -> Study:
    Path("study.yaml").write_text(yaml.safe_dump(KEYS))
    study = open_study("study.yaml")
    write_records(study)
    return study


def run_of(study: Study, algorithm: str, target: str = DNLI, seed: int = 1) -> Run:
    return next(
        run
        for run in select_transfer_runs(study.plan)
        if (run.method, run.about["target"], run.seed) == (algorithm, target, seed)
    )


def missing(study: Study) -> pd.DataFrame:
    """Return rows by (algorithm, target, seed)."""
    frames = compute_frames(collect.gather_records(study))
    return frames["missing_runs"].set_index(["algorithm", "target", "seed"])


def undo(study: Study, run: Run, step: int = -1, log: str | None = None) -> Path:
    """Reduce a run's training to its log, or remove it."""
    folder = Path(study.get_node_folder(run.stages[step]))
    shutil.rmtree(folder)
    if log is not None:
        folder.mkdir()
        (folder / "train.log").write_text(log)
    return folder


def test_each_state_and_its_reason(study: Study) -> None:
    undo(study, run_of(study, "multitask"))
    stopped = undo(study, run_of(study, "multitask_finetune", ER, 0), log="epoch 1\n")
    failed = undo(
        study,
        run_of(study, "pretrain_finetune"),
        log="Traceback (most recent call last):\n  somewhere\nValueError: no such shape\n",
    )
    running = undo(study, run_of(study, "pretrain_finetune", ER), log="epoch 1\n")
    with claim_folder(running, print):
        table = missing(study)
    assert len(table) == 5
    shown = table[["state", "reason", "stage", "error"]].astype(object)
    rows = shown.where(shown.notna(), None).T.to_dict("list")
    inside = {path: path.relative_to("results").as_posix() for path in (stopped, failed, running)}
    waiting = run_of(study, "multitask").stages[-1].path
    assert rows == {
        ("multitask", DNLI, 1): ["waiting", "no record", waiting, None],
        ("multitask", ER, 1): ["waiting", "no record", waiting, None],  # the same training
        ("multitask_finetune", ER, 0): ["interrupted", "interrupted", inside[stopped], None],
        ("pretrain_finetune", DNLI, 1): [
            "failed",
            "failed: ValueError: no such shape",
            inside[failed],
            "ValueError: no such shape",
        ],
        ("pretrain_finetune", ER, 1): ["running", "running", inside[running], None],
    }


@pytest.mark.parametrize(
    ("log", "state", "reason"),
    [
        ("error: no memory\n", "failed", "its parent DNLI+ER failed: no memory"),
        ("epoch 1\n", "interrupted", "its parent DNLI+ER was interrupted"),
        (None, "waiting", "no record"),
        ("damaged", "damaged", "its parent DNLI+ER is damaged: {}: The record is not valid JSON"),
    ],
)
def test_a_run_is_where_its_parent_is(
    study: Study, log: str | None, state: str, reason: str
) -> None:
    run = run_of(study, "multitask_finetune")
    undo(study, run)
    record = Path(study.get_record_path(run.stages[0]))
    if log == "damaged":
        record.write_text("{")
    else:
        undo(study, run, step=0, log=log)
    row = missing(study).loc[("multitask_finetune", DNLI, 1)]
    assert row["state"] == state and row["reason"].startswith(reason.format(record))
    assert row["stage"] == record.parent.relative_to("results").as_posix()
    assert row["path"] == f"{run.stages[-1].path}/metrics.json"


def test_a_run_without_its_baseline_says_why(study: Study) -> None:
    baseline = run_of(study, "baseline")
    folder = undo(study, baseline, log="error: the disk is full\n")
    table = missing(study)
    assert table.loc[("baseline", DNLI, 1)]["state"] == "failed"
    for algorithm in ("multitask", "pretrain_finetune", "multitask_finetune"):
        row = table.loc[(algorithm, DNLI, 1)]
        assert (row["state"], row["reason"]) == ("baseline missing", "its baseline is missing")
        assert row["error"] == "the baseline: failed: the disk is full"
        assert row["stage"] == folder.relative_to("results").as_posix()
    # Its record exists, so fine-tuning from the failed source's model is not missing by itself.
    assert ("pretrain_finetune", ER, 1) not in table.index


def test_the_command_counts_states_and_names_damage(
    study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    undo(study, run_of(study, "multitask"))
    undo(study, run_of(study, "multitask_finetune", ER, 0), log="error: out of memory\n")
    record = Path(study.get_record_path(run_of(study, "pretrain_finetune").stages[-1]))
    record.write_text("{")
    assert main(["collect", "--config", "study.yaml"]) == 0
    said = capsys.readouterr().out
    assert "12 runs, 4 missing (1 failed, 1 damaged, 2 waiting)" in said
    assert f"A damaged record was excluded: {record}: The record is not valid JSON" in said
    holes = Path(study.missing_results_log).read_text()
    assert f"{record}: The record is not valid JSON" in holes
    assert "failed: out of memory" in holes
    tables = Path(study.tables, "runs.parquet")
    tables.unlink()
    assert main(["collect", "--config", "study.yaml", "--complete"]) == 6
    said = capsys.readouterr().err
    assert "4 of 16 planned runs have no usable record, so no table was written" in said
    assert f"{record}: The record is not valid JSON" in said
    assert not tables.exists()
