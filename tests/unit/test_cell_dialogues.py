"""Cells whose test instances share dialogues, with one seed, or with more baselines than runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from cell_studies import (
    A_CELL,
    RESULTS,
    TASKS,
    a_run,
    finished_study,
    gather,
    one,
    record_of,
    replace_column,
    select_rows,
)

from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.designs.transfer.statistics.cells import compute_cells
from tasktransfer.results.study import Study
from tasktransfer.stats.bootstrap import compute_q_values


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """Write a finished study into the working directory, with two test instances per dialogue."""
    monkeypatch.chdir(tmp_path)
    return finished_study()


def test_dialogues_are_resampled_whole(study: Study) -> None:
    found = gather(study)["cells"]
    # Two instances of 40 in each dialogue.
    assert set(found["resampled_by"]) == {"dialogue"}
    assert set(found["dialogues"]) == {20}
    assert (found["standard_error"] >= found["test_error"]).all()
    assert found["no_interval"].isna().all()


def test_rows_without_dialogues_are_resampled_by_instance_and_say_so(study: Study) -> None:
    for run in select_transfer_runs(study.plan):
        if run.about["target"] == TASKS[1]:
            replace_column(record_of(study, run), "cluster", [None] * 40, TASKS[1])
    tables = gather(study)
    assert tables["problems"].empty
    found = tables["cells"]
    of_task = found["target"] == TASKS[1]
    assert set(found.loc[of_task, "resampled_by"]) == {"instance"}
    assert set(found.loc[of_task, "dialogues"]) == {0}
    assert set(found.loc[~of_task, "resampled_by"]) == {"dialogue"}
    assert set(found["instances"]) == {40}


def test_one_dialogue_tells_nothing_and_says_why(study: Study) -> None:
    for run in select_transfer_runs(study.plan):
        if run.about["target"] == TASKS[1]:
            replace_column(record_of(study, run), "cluster", ["the only one"] * 40, TASKS[1])
    found = gather(study)["cells"]
    alone = found[found["target"] == TASKS[1]]
    assert alone[["low", "high", "p", "q", "standard_error"]].isna().all(axis=None)
    assert set(alone["no_interval"]) == {"all 40 test instances are from one dialogue"}
    assert alone["delta"].notna().all()
    assert not alone["significant"].any()
    assert found.loc[found["target"] != TASKS[1], "low"].notna().all()


def test_one_seed_is_never_significant(study: Study) -> None:
    for run in select_transfer_runs(study.plan):
        if run.method == "multitask" and run.seed > 0:
            record_of(study, run).unlink(missing_ok=True)
    found = gather(study)["cells"]
    alone = found[found["n_seeds"] == 1]
    assert set(alone["algorithm"]) == {"multitask"}
    # Its test of this one training is there, and no part of what is marked.
    assert (alone["p"] < 0.01).any()
    assert alone["q"].isna().all()
    assert not alone["significant"].any()
    rest = found[(found["n_seeds"] == 3) & (found["n_sources"] == 1)]
    assert rest["q"].tolist() == pytest.approx(compute_q_values(rest["p"]).tolist())


def test_runs_are_compared_with_the_baselines_of_their_seeds_and_those_trained_beside(
    study: Study,
) -> None:
    """A run is missing: its baseline counts only if it is one of the extra baselines."""
    record_of(study, a_run(study)).unlink()
    tables = gather(study)
    row = one(tables["cells"], **A_CELL)
    assert (row.n_seeds, row.n_baselines) == (2, 2)
    assert row.delta == pytest.approx(select_rows(tables["deltas"], **A_CELL)["delta"].mean())
    row = one(
        compute_cells(tables["transfer_runs"], tables["deltas"], RESULTS, more_baseline_seeds=[1]),
        **A_CELL,
    )
    runs = select_rows(tables["transfer_runs"], model="tiny-bert", target=TASKS[1])
    baselines = runs.loc[runs["algorithm"] == "baseline", "score"]
    transfer = runs[(runs["algorithm"] == "multitask") & (runs["source"] == TASKS[0])]["score"]
    assert (row.n_seeds, row.n_baselines, len(transfer)) == (2, 3, 2)
    assert row.baseline_score == pytest.approx(baselines.mean())
    assert row.delta == pytest.approx(transfer.mean() - baselines.mean())
