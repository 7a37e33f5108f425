"""The generator of records of the paper's size makes what the paper made, and valid records."""

from __future__ import annotations

from pathlib import Path

import pytest
from tasktransfer.designs.transfer.collect.planned import expected_run

from scale_records import paper_study, write_stage
from tasktransfer.core.plan import Plan
from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.collect.collect import collect_runs
from tasktransfer.designs.transfer.runs import transfer_runs
from tasktransfer.designs.transfer.statistics.cells import cells
from tasktransfer.results.study import Study

INSTANCES = 50


@pytest.fixture(scope="module")
def study() -> Study:
    return paper_study()


@pytest.fixture(scope="module")
def plan(study: Study) -> Plan:
    return study.plan


def test_as_many_as_the_paper_has(plan: Plan) -> None:
    counts = {"baseline": 0, "single": 0, "several": 0}
    for run in transfer_runs(plan):
        counts[("baseline", "single", "several")[min(len(run.about["sources"]), 2)]] += 1
    assert counts == {"baseline": 255, "single": 5940, "several": 180}
    assert len(plan.stages) == 255 + 5940 - 990 + 180 + 60


def written(study: Study, plan: Plan, folder: Path) -> list[Run]:
    """One seed of one model: every baseline, and a transfer to every task."""
    runs: dict[tuple[str, bool], Run] = {}
    for run in transfer_runs(plan):
        if run.seed == 0 and run.model == "gpt2" and len(run.about["sources"]) < 2:
            runs.setdefault((run.about["target"], bool(run.about["sources"])), run)
    for run in runs.values():
        write_stage(folder, study, run.stages[-1], run, INSTANCES)
    return list(runs.values())


def test_records_of_every_task_pass_all_checks(study: Study, plan: Plan, tmp_path: Path) -> None:
    runs = written(study, plan, tmp_path)
    assert len(runs) == 2 * 17
    tables, _ = collect_runs(tmp_path, [expected_run(run) for run in runs])
    assert tables.problems.empty
    assert len(tables.runs) == 34
    found = cells(tables, tmp_path)
    assert found["target"].nunique() == 17
    assert (found["instances"] == INSTANCES).all()
    assert found["p"].between(0, 1).all()


def test_another_take_is_another_result(study: Study, plan: Plan, tmp_path: Path) -> None:
    run = transfer_runs(plan)[0]
    first = write_stage(tmp_path, study, run.stages[-1], run, INSTANCES).read_text()
    assert write_stage(tmp_path, study, run.stages[-1], run, INSTANCES).read_text() == first
    assert write_stage(tmp_path, study, run.stages[-1], run, INSTANCES, "2").read_text() != first
