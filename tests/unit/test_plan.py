"""Runs and distinct stages of a config, and what a stage's digest depends on."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from tasktransfer import config
from tasktransfer.config import Config
from tasktransfer.core.nodes import Stage
from tasktransfer.core.specs import ModelSpec, Training
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer import plan
from tasktransfer.designs.transfer.plan import MultiSource, Plan, Revisions

ROOT = Path(__file__).resolve().parents[2]

A, B, C = "emotion_recognition", "dialogue_nli", "topic_classification"


def revisions(study: Config, data: str = "d") -> Revisions:
    return Revisions(
        {d.name: data for d in study.datasets},
        {m.name: ModelSpec(m.name, m.family, m.name, m.max_length) for m in study.models},
    )


def three_tasks(**keys: Any) -> Config:
    study = {
        "study": "three",
        "datasets": {"DailyDialog": {"tasks": [A, B, C]}},
        "models": [{"name": "m", "family": "encoder", "checkpoint": "tiny"}],
        "multi_source": {"mode": "auto", "sources_per_target": 2},
    }
    return config.parse(study | keys, "three.yaml")


def build(study: Config, *selected: MultiSource) -> Plan:
    return plan.build(study, revisions(study), selected)


def test_the_paper_single_source_is_6195_distinct_trainings() -> None:
    study = config.load(ROOT / "workflow/presets/paper.yaml", {"multi_source": {"mode": "off"}})
    made = build(study)
    algorithms = Counter(run.algorithm for run in made.runs)
    assert algorithms.pop("baseline") == 255
    assert sum(algorithms.values()) == 5940
    assert set(algorithms.values()) == {1980}
    assert len(made.runs) == len(made.stages) == 6195
    assert len({stage.path for stage in made.stages}) == 6195


def test_the_paper_multi_source_adds_180_runs_and_their_pretrainings() -> None:
    study = config.load(ROOT / "workflow/presets/paper.yaml")
    made = build(study)
    several = [run for run in made.runs if len(run.sources) > 1]
    assert len(several) == 4 * 3 * 3 * 5
    assert {DATASETS[run.dataset].tasks[run.target].short for run in several} == {
        *("DRSE", "DNLI", "CI", "QA")
    }
    assert {len(run.sources) for run in several} == {3}
    kinds = Counter(stage.kind for stage in made.stages)
    assert kinds == {"baseline": 255, "pretrain": 60, "multitask": 2040, "finetune": 4080}
    assert len(made.stages) == 6195 + 180 + 60


def test_equal_stages_are_one_object() -> None:
    made = build(three_tasks())
    assert len(made.runs) == len(made.stages) == 3 + 3 * 6
    by_run = {(r.algorithm, r.sources, r.target): r for r in made.runs}
    transfer = by_run["pretrain_finetune", (A,), B]
    assert transfer.stages[0] is by_run["baseline", (), A].scored
    halves = by_run["multitask_finetune", (A,), B]
    assert halves.stages[0] is by_run["multitask", (A,), B].scored
    assert all(s.parent is None or s.parent in made.stages for s in made.stages)


def test_parents_come_before_children() -> None:
    made = build(three_tasks())
    place = {stage.digest: i for i, stage in enumerate(made.stages)}
    assert all(place[s.parent.digest] < place[s.digest] for s in made.stages if s.parent)


def test_multitask_of_a_pair_depends_on_its_target() -> None:
    by_run = {(r.algorithm, r.sources, r.target): r for r in build(three_tasks()).runs}
    there, back = by_run["multitask", (A,), B], by_run["multitask", (B,), A]
    assert there.scored.train_tasks == back.scored.train_tasks
    assert there.scored.digest != back.scored.digest


def test_targets_that_share_a_source_set_share_its_pretraining() -> None:
    tasks = list(DATASETS["DailyDialog"].tasks)[:4]
    named = [
        {"dataset": "DailyDialog", "target": target, "sources": order}
        for target, order in ((tasks[2], tasks[:2]), (tasks[3], tasks[1::-1]))
    ]
    study = config.parse(
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
    assert sum(stage.kind == "pretrain" for stage in made.stages) == 1
    assert sum(len(run.sources) == 2 for run in made.runs) == 2


def test_the_order_of_sources_changes_nothing() -> None:
    there = build(three_tasks(), MultiSource("DailyDialog", C, (A, B)))
    back = build(three_tasks(), MultiSource("DailyDialog", C, (B, A)))
    assert [run.identity for run in there.runs] == [run.identity for run in back.runs]
    assert [s.digest for s in there.stages] == [s.digest for s in back.stages]
    assert sum(len(run.sources) == 2 for run in there.runs) == 3


def test_a_selection_that_is_named_already_adds_nothing() -> None:
    named = {"dataset": "DailyDialog", "target": C, "sources": [A, B]}
    study = three_tasks(multi_source={"mode": "named", "named": [named]})
    assert len(build(study).runs) == len(build(study, MultiSource("DailyDialog", C, (B, A))).runs)


def test_any_number_of_sources() -> None:
    tasks = tuple(DATASETS["DailyDialog"].tasks)
    study = three_tasks()
    for count in range(2, len(tasks)):
        made = build(study, MultiSource("DailyDialog", tasks[0], tasks[1 : count + 1]))
        assert max(len(run.sources) for run in made.runs) == count


def test_pairs_replace_the_square() -> None:
    pairs = [{"source": A, "target": B}]
    datasets = {"DailyDialog": {"tasks": [A, B, C], "pairs": pairs}}
    study = three_tasks(datasets=datasets, multi_source={})
    made = build(study)
    assert sum(run.algorithm == "baseline" for run in made.runs) == 3
    assert {(r.sources, r.target) for r in made.runs if r.sources} == {((A,), B)}


def test_adding_changes_no_digest_that_was_there() -> None:
    before = {s.digest for s in build(three_tasks()).stages}
    grown = three_tasks(
        seeds=2,
        datasets={"DailyDialog": {"tasks": "all"}, "Friends": {}},
        models=[
            {"name": name, "family": "encoder", "checkpoint": "tiny"} for name in ("m", "other")
        ],
    )
    assert before < {s.digest for s in build(grown).stages}


BASE = Stage(
    dataset="DailyDialog",
    data_revision="r1",
    few_sample=True,
    model=ModelSpec("m", "encoder", "w1", 128),
    train_tasks=(A, B),
    select_on=(B,),
    parent=None,
    training=Training(),
    seed=0,
    task_shorts={A: "ER", B: "DNLI", C: "TC"},
)

OTHER_TRAINING: dict[str, Any] = {
    "learning_rate": 1e-4,
    "batch_size": 61,
    "epochs": 31,
    "max_grad_norm": 2.0,
    "precision": "float32",
    "task_weighting": "none",
    "loss_on": "sequence",
    "fidelity": "tlidb",
    "dropout": 0.0,
    "limit_train": 5,
    "limit_dev": 5,
    "limit_test": 5,
}

CHANGES: dict[str, Stage] = {
    "dataset": replace(BASE, dataset="Friends"),
    "data revision": replace(BASE, data_revision="r2"),
    "few sample": replace(BASE, few_sample=False),
    "family": replace(BASE, model=replace(BASE.model, family="decoder")),
    "weights": replace(BASE, model=replace(BASE.model, weights="w2")),
    "max length": replace(BASE, model=replace(BASE.model, max_length=129)),
    "tasks": replace(BASE, train_tasks=(A, B, C)),
    "selection": replace(BASE, select_on=(A,)),
    "parent": replace(BASE, parent=BASE),
    "seed": replace(BASE, seed=1),
    **{
        key: replace(BASE, training=replace(BASE.training, **{key: value}))
        for key, value in OTHER_TRAINING.items()
    },
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_changes_numbers_changes_the_digest(what: str) -> None:
    assert CHANGES[what].digest != BASE.digest


def test_every_hyperparameter_is_tried_above() -> None:
    assert {field.name for field in fields(Training)} == set(OTHER_TRAINING)
    assert len({stage.digest for stage in CHANGES.values()}) == len(CHANGES)


def test_names_change_no_digest() -> None:
    renamed = replace(BASE, model=replace(BASE.model, name="other"), task_shorts={})
    assert renamed.digest == BASE.digest


def test_the_recipe_version_changes_every_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasktransfer.core.stage.RECIPE_VERSION", 999)
    assert replace(BASE).digest != BASE.digest


def test_the_digest_is_pinned() -> None:
    """Results on disk are found by it: it may change only together with RECIPE_VERSION."""
    assert BASE.digest == "87cb13bf3ec2b13f3a117359fdf1d51ab5ce23422d267ebd1e3413daf22a211a"


def test_labels_and_paths_are_readable() -> None:
    assert BASE.label == "ER+DNLI@DNLI"
    fine = replace(BASE, train_tasks=(B,), parent=BASE)
    assert fine.label == "DNLI_from_ER+DNLI@DNLI"
    assert fine.path == (
        f"stages/finetune/DailyDialog/m/DNLI_from_ER+DNLI@DNLI/seed0-{fine.digest[:12]}"
    )


def test_kinds() -> None:
    single = replace(BASE, train_tasks=(B,))
    assert single.kind == "baseline"
    assert replace(BASE, select_on=(A, B)).kind == "pretrain"
    assert BASE.kind == "multitask"
    assert replace(single, parent=BASE).kind == "finetune"


def test_a_stage_survives_json() -> None:
    for stage in (BASE, replace(BASE, train_tasks=(B,), parent=BASE)):
        again = Stage.from_json(stage.to_json())
        assert again.digest == stage.digest
        assert again.path == stage.path


def test_run_of_reads_the_run_off_the_stage() -> None:
    made = build(three_tasks(), MultiSource("DailyDialog", C, (A, B)))
    for run in made.runs:
        found = plan.run_of(run.scored)
        assert found is not None
        assert found.identity == run.identity
        assert [s.digest for s in found.stages] == [s.digest for s in run.stages]
    assert [plan.run_of(s) for s in made.stages if s.kind == "pretrain"] == [None]
