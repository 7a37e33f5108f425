"""Controls as lists of steps, and their runs in a plan."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from small_study import parse, refusal

from tasktransfer.core.nodes import Stage
from tasktransfer.core.plan import Plan
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec
from tasktransfer.designs import load_config
from tasktransfer.designs.transfer import plan, study_plan
from tasktransfer.designs.transfer.algorithms import CONTROLS
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.designs.transfer.runs import is_control, select_transfer_runs
from tasktransfer.results.revisions import Revisions

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT / "workflow/presets/paper.yaml"
NO_SEVERAL = {"multi_source": {"mode": "off"}}
ALL = list(CONTROLS)
A, B, C = "emotion_recognition", "dialogue_nli", "topic_classification"


def build(study: TransferConfig) -> Plan:
    models = {m.name: ModelSpec(m.name, m.family, m.name, m.max_length) for m in study.models}
    return plan.build_plan(study, Revisions({d.name: "d" for d in study.datasets}, models))


SMALL = {
    "study": "three",
    "datasets": {"DailyDialog": {"tasks": [A, B, C], "pairs": [{"source": A, "target": C}]}},
    "models": [{"name": "m", "family": "encoder", "checkpoint": "tiny"}],
    "algorithms": ["pretrain_finetune"],
    "controls": ALL,
    "training": {"epochs": 7},
}


def study(**keys: Any) -> TransferConfig:
    return parse(SMALL | keys)


def runs_of(made: Plan, seed: int = 0) -> dict[tuple[str, tuple[str, ...], str], Run]:
    return {
        (r.method, r.about["sources"], r.about["target"]): r for r in made.runs if r.seed == seed
    }


def test_all_controls_add_2745_trainings_to_the_paper() -> None:
    without = build(load_config(PAPER, NO_SEVERAL))
    made = build(load_config(PAPER, NO_SEVERAL | {"controls": ALL}))
    assert (len(without.stages), len(made.stages)) == (5205, 7950)
    methods = Counter(run.method for run in made.runs)
    assert [methods[name] for name in ALL] == [255, 255, 1980]
    assert select_transfer_runs(made) == select_transfer_runs(without)
    kept = {stage.digest for stage in made.stages}
    assert all(stage.digest in kept for stage in without.stages)


def test_twenty_baseline_seeds_add_baselines_and_nothing_else() -> None:
    made = build(load_config(PAPER, NO_SEVERAL | {"baseline_seeds": 20}))
    assert len(made.stages) == 5205 + 15 * 17 * 3
    methods = Counter(run.method for run in made.runs)
    assert methods.pop("baseline") == 20 * 17 * 3
    assert set(methods.values()) == {1980}
    assert {run.seed for run in made.runs if run.method != "baseline"} == set(range(5))


def test_as_many_baseline_seeds_as_seeds_change_nothing() -> None:
    assert build(study(seeds=2, baseline_seeds=2)).nodes == build(study(seeds=2)).nodes


def test_self_transfer_starts_from_the_targets_baseline() -> None:
    runs = runs_of(build(study()))
    alone, twice = runs["baseline", (), C].stages[-1], runs["self_transfer", (), C].stages[-1]
    assert twice.parents == (alone,)
    assert (twice.kind, twice.label, twice.train_tasks) == ("finetune", "TC_from_TC", (C,))
    assert twice.training == alone.training


def test_a_longer_baseline_has_twice_the_epochs_and_no_parent() -> None:
    runs = runs_of(build(study()))
    longer = runs["longer_baseline", (), C].stages[-1]
    assert (longer.training.epochs, longer.parents, longer.kind) == (14, (), "control")
    assert longer.label == "TC_14_epochs"


def test_a_shuffled_source_trains_on_permuted_answers_and_the_target_on_right_ones() -> None:
    runs = runs_of(build(study()))
    source, target = runs["shuffled_source", (A,), C].stages
    real = runs["pretrain_finetune", (A,), C]
    assert (source.data.recipe, source.kind) == ("permuted_answers", "control")
    assert target.data == real.stages[-1].data
    assert source.training == real.stages[0].training
    assert target.parents == (source,)


def test_only_a_source_that_lists_its_answers_has_another_permutation() -> None:
    tasks = ["reading_comprehension", "question_answering", "emory_emotion_recognition"]
    made = build(study(datasets={"Friends": {"tasks": tasks}}))
    settings = {
        stage.train_tasks: stage.data.settings for stage in made.stages if stage.data.recipe
    }
    assert settings["reading_comprehension",]["listed"] is True
    assert "listed" not in settings["question_answering",]
    assert "listed" not in settings["emory_emotion_recognition",]


def test_seeds_have_permutations_of_their_own_and_tasks_share_them() -> None:
    made = build(study(seeds=2, datasets={"DailyDialog": {"tasks": [A, B, C]}}))
    assert sorted(data.settings["seed"] for data in made.derived) == [0, 1]
    shuffled = [s for s in made.stages if s.data.recipe]
    assert len(shuffled) == 2 * 3


def test_controls_are_of_targets_only() -> None:
    targets = {run.about["target"] for run in build(study()).runs if is_control(run)}
    assert targets == {C}


def test_without_controls_nothing_changes() -> None:
    with_controls, without = study(), study(controls=[])
    assert select_transfer_runs(build(with_controls)) == build(without).runs
    assert "controls" not in without.build_digest_content()
    assert "baseline_seeds" not in without.build_digest_content()
    assert with_controls.digest != without.digest


def test_a_choice_does_not_wait_for_controls() -> None:
    several = {"mode": "auto", "targets_per_dataset": 1, "sources_per_target": 1}
    config = study(multi_source=several, datasets={"DailyDialog": {"tasks": [A, B, C]}})
    models = {"m": ModelSpec("m", "encoder", "m", 512)}
    made = study_plan.plan_study(config, Revisions({"DailyDialog": "d"}, models))
    (choice,) = made.choices
    waited = [node for node in choice.after if isinstance(node, Stage)]
    assert waited == [*choice.after]
    assert waited
    assert not any(stage.kind == "control" or stage.label == "TC_from_TC" for stage in waited)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"controls": ["shuffled"]}, "shuffled_source"),
        ({"controls": ["self_transfer", "self_transfer"]}, "duplicates"),
        ({"seeds": 3, "baseline_seeds": [0, 1]}, "must contain every seed in seeds"),
    ],
)
def test_what_cannot_be_is_refused(keys: dict[str, Any], said: str) -> None:
    assert said in refusal(SMALL | keys)
