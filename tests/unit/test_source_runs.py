"""Runs that rows of the tables on uncertainty are computed from."""

from __future__ import annotations

from typing import Any

import pytest

from finished_stages import MODEL, TASKS, opened
from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.runs import NO_MODEL
from tasktransfer.designs.transfer.tables.printed_rows import drop_unused_baselines, is_source_run

ER, DNLI, TC = TASKS
GROUP = {"dataset": "DailyDialog", "model": "tiny-bert", "algorithm": "multitask"}
Name = tuple[str, str, str, int]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, ...]:
    """Return every run of a study with controls, references, selectors and more baselines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("plan"))
        return opened(
            datasets={"DailyDialog": {"tasks": TASKS}},
            models=[MODEL, {**MODEL, "name": "other"}],
            algorithms=["multitask", "pretrain_finetune"],
            controls=["longer_baseline", "shuffled_source"],
            references=["most_frequent", "frozen_logistic"],
            selectors=["size"],
            seeds=1,
            baseline_seeds=2,
        ).plan.runs


def used(runs: tuple[Run, ...], table: str, **row: Any) -> set[Name]:
    """Return method, sources, target and seed of a row's runs on the model tiny-bert."""
    own = drop_unused_baselines(table, row, [run for run in runs if is_source_run(table, row, run)])
    assert {run.model for run in own} <= {"tiny-bert", NO_MODEL, "other"}
    return {
        (run.method, "+".join(run.about["sources"]), run.about["target"], run.seed)
        for run in own
        if run.model != "other"
    }


def pairs(method: str, *targets: str) -> set[Name]:
    return {(method, s, t, 0) for t in targets or TASKS for s in TASKS if s != t}


def baselines(*targets: str, seeds: int = 1) -> set[Name]:
    return {("baseline", "", target, seed) for target in targets or TASKS for seed in range(seeds)}


def test_a_group_uses_its_pairs_and_their_baselines(runs: tuple[Run, ...]) -> None:
    assert used(runs, "summary", **GROUP) == pairs("multitask") | baselines()
    both = used(runs, "asymmetry", **GROUP, task_a=ER, task_b=TC)
    cells = {("multitask", ER, TC, 0), ("multitask", TC, ER, 0)}
    assert both == cells | baselines(ER, TC)


def test_a_comparison_uses_both_of_its_matrices(runs: tuple[Run, ...]) -> None:
    row = {"dataset": "DailyDialog", "between": "algorithm", "held": "tiny-bert"}
    row |= {"a": "multitask", "b": "pretrain_finetune"}
    expected = pairs("multitask") | pairs("pretrain_finetune") | baselines()
    assert used(runs, "agreement", **row) == expected
    row = {"dataset": "DailyDialog", "between": "model", "held": "multitask"}
    assert used(runs, "agreement", **row, a="tiny-bert", b="x") == pairs("multitask") | baselines()
    assert used(runs, "agreement_overall", dataset="DailyDialog", between="model") == expected


def test_a_control_is_compared_with_its_own_pairs(runs: tuple[Run, ...]) -> None:
    summary = used(runs, "control_summary", **GROUP, control="longer_baseline")
    assert {name[0] for name in summary} == {"multitask", "longer_baseline"}
    cell = used(runs, "controls", **GROUP, source=ER, target=TC)
    assert cell == {
        ("multitask", ER, TC, 0),
        ("shuffled_source", ER, TC, 0),
        ("longer_baseline", "", TC, 0),
        *baselines(TC),
    }


def test_a_reference_is_a_fit_of_its_own(runs: tuple[Run, ...]) -> None:
    row = {"dataset": "DailyDialog", "model": "tiny-bert", "target": TC}
    for reference in ("most_frequent", "frozen_logistic"):
        found = used(runs, "references", **row, reference=reference)
        assert found == {("reference", "", "", 0)} | baselines(TC, seeds=2)
    assert used(runs, "reference", **row) == baselines(TC, seeds=2)


def test_shared_instances_are_those_of_one_baseline_per_task(runs: tuple[Run, ...]) -> None:
    row = {"dataset": "DailyDialog", "source": ER, "target": TC}
    shared = used(runs, "overlap", **row, basis="test instances")
    assert sorted(name[:3] for name in shared) == [("baseline", "", task) for task in (ER, TC)]
    assert used(runs, "overlap", **row, basis="training dialogues") == set()


def test_a_collapsed_cell_has_its_own_runs_alone(runs: tuple[Run, ...]) -> None:
    assert used(runs, "collapsed", **GROUP, source=ER, target=TC) == {("multitask", ER, TC, 0)}
    row = {**GROUP, "algorithm": "baseline", "source": "", "target": TC}
    assert used(runs, "collapsed", **row) == baselines(TC, seeds=2)
