"""Runs and distinct stages of a transfer config."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from small_study import parse

from tasktransfer.core.plan import Plan
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec
from tasktransfer.datasets import DATASETS
from tasktransfer.designs import load_config
from tasktransfer.designs.transfer import plan
from tasktransfer.designs.transfer.choices import MultiSource
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.errors import ConfigError
from tasktransfer.results.revisions import Revisions

ROOT = Path(__file__).resolve().parents[2]

A, B, C = "emotion_recognition", "dialogue_nli", "topic_classification"


def revisions(study: TransferConfig, data: str = "d") -> Revisions:
    return Revisions(
        {d.name: data for d in study.datasets},
        {m.name: ModelSpec(m.name, m.family, m.name, m.max_length) for m in study.models},
    )


def three_tasks(**keys: Any) -> TransferConfig:
    study = {
        "study": "three",
        "datasets": {"DailyDialog": {"tasks": [A, B, C]}},
        "models": [{"name": "m", "family": "encoder", "checkpoint": "tiny"}],
        "multi_source": {"mode": "auto", "sources_per_target": 2},
    }
    return parse(study | keys)


def build(study: TransferConfig, *selected: MultiSource) -> Plan:
    return plan.build_plan(study, revisions(study), selected)


def runs_of(made: Plan) -> dict[tuple[str, tuple[str, ...], str], Run]:
    """Return runs by algorithm, sources and target, for one model and seed."""
    return {
        (run.method, run.about["sources"], run.about["target"]): run
        for run in select_transfer_runs(made)
    }


def test_the_paper_single_source_is_6195_runs_of_5205_trainings() -> None:
    """Each of 2 × 45 + 21 unordered pairs is trained once per model and seed for two targets."""
    study = load_config(ROOT / "workflow/presets/paper.yaml", {"multi_source": {"mode": "off"}})
    made = build(study)
    algorithms = Counter(run.method for run in made.runs)
    assert algorithms.pop("baseline") == 255
    assert sum(algorithms.values()) == 5940
    assert set(algorithms.values()) == {1980}
    assert len(made.runs) == 6195
    shared = [stage for stage in made.stages if stage.also_selected]
    assert len(shared) == (45 + 21) * 3 * 5 == 990
    assert all([one.tasks for one in s.selections] == [(t,) for t in s.train_tasks] for s in shared)
    assert len(made.stages) == len({stage.path for stage in made.stages}) == 6195 - 990 == 5205


def test_the_paper_multi_source_adds_180_runs_and_their_pretrainings() -> None:
    study = load_config(ROOT / "workflow/presets/paper.yaml")
    made = build(study)
    several = [run for run in select_transfer_runs(made) if len(run.about["sources"]) > 1]
    assert len(several) == 4 * 3 * 3 * 5
    assert {DATASETS[run.about["dataset"]].tasks[run.about["target"]].short for run in several} == {
        *("DRSE", "DNLI", "CI", "QA")
    }
    assert {len(run.about["sources"]) for run in several} == {3}
    kinds = Counter(stage.kind for stage in made.stages)
    assert kinds == {"baseline": 255, "multitask": 990 + 60 + 60, "finetune": 4080}
    assert len(made.stages) == 5205 + 180 + 60


def test_equal_stages_are_one_object() -> None:
    made = build(three_tasks())
    assert (len(made.runs), len(made.stages)) == (3 + 3 * 6, 3 + 3 * 6 - 3)
    by_run = runs_of(made)
    transfer = by_run["pretrain_finetune", (A,), B]
    assert transfer.stages[0] is by_run["baseline", (), A].stages[-1]
    halves = by_run["multitask_finetune", (A,), B]
    assert halves.stages[0] is by_run["multitask", (A,), B].stages[-1]
    known = {stage.digest: stage for stage in made.stages}
    for stage in made.stages:
        for parent in stage.parents:
            assert parent.selection in known[parent.digest].selections


def test_parents_come_before_children() -> None:
    made = build(three_tasks())
    place = {stage.digest: i for i, stage in enumerate(made.stages)}
    assert all(place[p.digest] < place[s.digest] for s in made.stages for p in s.parents)


def test_multitask_of_a_pair_is_one_training_with_a_best_round_for_each_target() -> None:
    by_run = runs_of(build(three_tasks()))
    there, back = by_run["multitask", (A,), B], by_run["multitask", (B,), A]
    assert there.stages[-1].train_tasks == back.stages[-1].train_tasks
    assert there.stages[-1].digest == back.stages[-1].digest
    assert (there.stages[-1].select_on, back.stages[-1].select_on) == ((B,), (A,))
    tuned = [by_run["multitask_finetune", *pair].stages[-1] for pair in (((A,), B), ((B,), A))]
    assert [stage.starts[0].selected_on for stage in tuned] == [(B,), (A,)]


def test_targets_that_share_a_source_set_share_its_pretraining() -> None:
    tasks = list(DATASETS["DailyDialog"].tasks)[:4]
    named = [
        {"dataset": "DailyDialog", "target": target, "sources": order}
        for target, order in ((tasks[2], tasks[:2]), (tasks[3], tasks[1::-1]))
    ]
    study = parse(
        {
            "study": "s",
            "datasets": {"DailyDialog": {"tasks": tasks}},
            "models": [{"name": "m", "family": "encoder", "checkpoint": "tiny"}],
            "algorithms": ["pretrain_finetune"],
            "multi_source": {"mode": "named", "named": named},
        },
        "s.yaml",
    )
    made = build(study)
    assert sum(stage.kind == "multitask" for stage in made.stages) == 1
    assert made.count_runs()["pretrain_finetune, several sources"] == 2


def test_the_order_of_sources_changes_nothing() -> None:
    there = build(three_tasks(), MultiSource("DailyDialog", C, (A, B)))
    back = build(three_tasks(), MultiSource("DailyDialog", C, (B, A)))
    assert select_transfer_runs(there) == select_transfer_runs(back)
    assert [s.digest for s in there.stages] == [s.digest for s in back.stages]
    assert sum(len(run.about["sources"]) == 2 for run in select_transfer_runs(there)) == 3


def test_a_selection_that_is_named_already_adds_nothing() -> None:
    named = {"dataset": "DailyDialog", "target": C, "sources": [A, B]}
    study = three_tasks(multi_source={"mode": "named", "named": [named]})
    assert len(build(study).runs) == len(build(study, MultiSource("DailyDialog", C, (B, A))).runs)


def test_any_number_of_sources() -> None:
    tasks = tuple(DATASETS["DailyDialog"].tasks)
    study = three_tasks()
    for count in range(2, len(tasks)):
        made = build(study, MultiSource("DailyDialog", tasks[0], tasks[1 : count + 1]))
        assert max(len(run.about["sources"]) for run in select_transfer_runs(made)) == count


def test_pairs_replace_the_square() -> None:
    pairs = [{"source": A, "target": B}]
    datasets = {"DailyDialog": {"tasks": [A, B, C], "pairs": pairs}}
    study = three_tasks(datasets=datasets, multi_source={})
    made = build(study)
    assert made.count_runs()["baseline"] == 3
    pairs_of = {
        (run.about["sources"], run.about["target"])
        for run in select_transfer_runs(made)
        if run.about["sources"]
    }
    assert pairs_of == {((A,), B)}


def test_adding_changes_no_digest_that_existed() -> None:
    before = {s.digest for s in build(three_tasks()).stages}
    grown = three_tasks(
        seeds=2,
        datasets={"DailyDialog": {"tasks": "all"}, "Friends": {}},
        models=[
            {"name": name, "family": "encoder", "checkpoint": "tiny"} for name in ("m", "other")
        ],
    )
    assert before < {s.digest for s in build(grown).stages}


def sequential(*named: tuple[str, ...], algorithms: tuple[str, ...] = ()) -> Plan:
    """Return a study of ``sequential`` alone, from named sources in their order to C."""
    targets = [
        {"dataset": "DailyDialog", "target": C, "sources": list(sources)} for sources in named
    ]
    multi_source = {"mode": "named", "named": targets, "algorithms": ["sequential"]}
    return build(three_tasks(algorithms=["baseline", *algorithms], multi_source=multi_source))


def test_sequential_goes_through_its_sources_in_their_order() -> None:
    by_run = runs_of(sequential((A, B), (B, A)))
    there, back = by_run["sequential", (A, B), C], by_run["sequential", (B, A), C]
    assert [stage.train_tasks for stage in there.stages] == [(A,), (B,), (C,)]
    assert [stage.train_tasks for stage in back.stages] == [(B,), (A,), (C,)]
    for run in (there, back):
        before = (None, *run.stages)
        for stage, parent in zip(run.stages, before, strict=False):
            assert stage.parents == ((parent,) if parent else ())
    assert there.stages[-1].digest != back.stages[-1].digest
    assert there.stages[-1].path != back.stages[-1].path
    shared = {s.digest for s in there.stages} & {s.digest for s in back.stages}
    assert shared == set()


def test_the_only_stages_that_orders_share_are_baselines() -> None:
    made = sequential((A, B), (B, A))
    counts = Counter(stage.kind for stage in made.stages)
    assert counts == {"baseline": 3, "finetune": 4}
    by_run = runs_of(made)
    for order in ((A, B), (B, A)):
        first = by_run["sequential", order, C].stages[0]
        assert first is by_run["baseline", (), order[0]].stages[-1]


def test_sequential_with_one_source_is_pretrain_finetune() -> None:
    study = three_tasks(algorithms=["baseline", "pretrain_finetune", "sequential"], multi_source={})
    made = build(study)
    by_run = runs_of(made)
    assert made.count_runs() == {"baseline": 3, "pretrain_finetune": 6, "sequential": 6}
    assert len(made.stages) == 3 + 6
    assert (
        by_run["sequential", (A,), B].stages[-1] is by_run["pretrain_finetune", (A,), B].stages[-1]
    )


def test_a_repeated_source_is_refused() -> None:
    with pytest.raises(ConfigError, match="sources"):
        sequential((A, A))
