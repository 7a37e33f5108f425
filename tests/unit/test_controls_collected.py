"""Controls in the tables: there, and apart from the runs of algorithms."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
from controlled_study import RESULTS, finished, gather

from tasktransfer.designs.transfer.collect.collect import Tables
from tasktransfer.designs.transfer.collect.store import collect, read_tables
from tasktransfer.designs.transfer.commands import submission_records
from tasktransfer.designs.transfer.runs import TransferRun as Run
from tasktransfer.designs.transfer.runs import control_runs
from tasktransfer.errors import RecordError
from tasktransfer.results.study import Study


def quality(run: Run) -> float:
    return 0.5


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.chdir(tmp_path)
    return finished(quality)


def without_controls(tables: Tables) -> list[pd.DataFrame]:
    return [tables.runs, tables.scores, tables.deltas, tables.sizes, tables.missing]


def test_controls_have_tables_of_their_own(study: Study) -> None:
    tables = gather()
    counts = tables.control_runs.groupby("algorithm", sort=False).size()
    assert counts.to_dict() == {"self_transfer": 15, "longer_baseline": 15, "shuffled_source": 30}
    assert tables.control_missing.empty
    assert tables.problems.empty
    assert set(tables.runs["algorithm"]) == {"baseline", "pretrain_finetune", "multitask"}
    assert set(tables.deltas["algorithm"]) == {"pretrain_finetune", "multitask"}


def test_the_other_tables_are_those_of_the_study_without_controls(study: Study) -> None:
    with_controls = without_controls(gather())
    finished(quality, controls=[])
    plain = gather()
    assert plain.control_runs.empty
    for left, right in zip(with_controls, without_controls(plain), strict=True):
        pd.testing.assert_frame_equal(left, right)


def test_a_control_that_is_not_there_is_a_hole_among_the_controls(study: Study) -> None:
    gone = next(run for run in control_runs(study.plan) if run.algorithm == "longer_baseline")
    shutil.rmtree(study.folder(gone.scored))
    tables = gather()
    (row,) = tables.control_missing.to_dict("records")
    assert (row["algorithm"], row["state"]) == ("longer_baseline", "waiting")
    assert tables.missing.empty
    with pytest.raises(RecordError, match=gone.scored.path):
        collect(RESULTS, Path("plan.json"), Path("tables"), complete=True)


def test_controls_of_other_data_are_refused(study: Study) -> None:
    """They may differ in how they train, and in nothing else."""
    shuffled = next(run for run in control_runs(study.plan) if run.sources)
    path = Path(study.record(shuffled.scored))
    path.write_text(path.read_text().replace('"synthetic": true', '"synthetic": false'))
    Path(study.instances("DailyDialog"), "manifest.json").unlink(missing_ok=True)
    with pytest.raises(RecordError, match="synthetic of DailyDialog"):
        gather()


def test_what_is_written_is_read_again(study: Study) -> None:
    tables, _ = collect(RESULTS, Path("plan.json"), Path("tables"), complete=True)
    again, _ = read_tables(Path("tables"))
    pd.testing.assert_frame_equal(again.control_runs, tables.control_runs)


def test_no_control_is_submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    study = finished(quality, rules="challenge")
    offered = submission_records(study, "DailyDialog", "tiny-bert")
    assert len(offered) == 5 * (3 + 6 + 6)
    controls = {study.record(run.scored) for run in control_runs(study.plan)}
    assert not controls & set(offered)
