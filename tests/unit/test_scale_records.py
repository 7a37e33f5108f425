"""The generator of records of the paper's size writes the paper's runs and valid records."""

from __future__ import annotations

from pathlib import Path

from scale_records import paper_study, write_stage
from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.results.collect import gather_records
from tasktransfer.results.study import Study
from transfer_frames import compute_frames

INSTANCES = 50


def test_as_many_as_the_paper_has(tmp_path: Path) -> None:
    counts = {"baseline": 0, "single": 0, "several": 0}
    plan = paper_study(tmp_path).plan
    for run in select_transfer_runs(plan):
        counts[("baseline", "single", "several")[min(len(run.about["sources"]), 2)]] += 1
    assert counts == {"baseline": 255, "single": 5940, "several": 180}
    assert len(plan.stages) == 255 + 5940 - 990 + 180 + 60


def written(study: Study) -> list[Run]:
    """Write one seed of one model: every baseline, and one fine-tuning per task."""
    runs: dict[tuple[str, bool], Run] = {}
    for run in select_transfer_runs(study.plan):
        if run.seed == 0 and run.method in ("baseline", "pretrain_finetune"):
            runs.setdefault((run.about["target"], bool(run.about["sources"])), run)
    for run in runs.values():
        write_stage(study, run.stages[-1], [run], INSTANCES)
    return list(runs.values())


def test_records_of_every_task_pass_all_checks(tmp_path: Path) -> None:
    study = paper_study(tmp_path, models=1)
    runs = written(study)
    assert len(runs) == 2 * 17
    tables = compute_frames(gather_records(study, runs))
    assert tables["problems"].empty
    assert len(tables["transfer_runs"]) == 34
    found = tables["cells"]
    assert found["target"].nunique() == 17
    assert (found["instances"] == INSTANCES).all()
    assert found["p"].between(0, 1).all()


def test_another_take_is_another_result(tmp_path: Path) -> None:
    study = paper_study(tmp_path, models=1)
    run = select_transfer_runs(study.plan)[0]
    first, again, other = (
        write_stage(study, run.stages[-1], [run], INSTANCES, take).read_text()
        for take in ("", "", "2")
    )
    assert first == again != other
