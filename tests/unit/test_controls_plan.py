"""Controls in config and plan: what they train, and what they leave as it is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from small_study import parse

from tasktransfer.core.nodes import Data
from tasktransfer.core.plan import Plan
from tasktransfer.core.specs import ModelSpec
from tasktransfer.designs import load_config
from tasktransfer.designs.transfer import plan
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.designs.transfer.controls import CONTROLS
from tasktransfer.designs.transfer.runs import TransferRun, control_runs, transfer_runs
from tasktransfer.errors import ConfigError
from tasktransfer.operate.overview import overview
from tasktransfer.results.revisions import Revisions

ROOT = Path(__file__).resolve().parents[2]
A, B, C = "emotion_recognition", "dialogue_nli", "topic_classification"


def revisions(study: TransferConfig) -> Revisions:
    return Revisions(
        {d.name: "d" for d in study.datasets},
        {m.name: ModelSpec(m.name, m.family, m.name, m.max_length) for m in study.models},
    )


def three_tasks(**keys: Any) -> TransferConfig:
    study = {
        "study": "three",
        "datasets": {"DailyDialog": {"tasks": [A, B, C]}},
        "models": [{"name": "m", "family": "encoder", "checkpoint": "tiny"}],
    }
    return parse(study | keys)


def build(study: TransferConfig) -> Plan:
    return plan.build(study, revisions(study))


def controls_of(made: Plan) -> dict[tuple[str, tuple[str, ...], str], TransferRun]:
    return {(run.algorithm, run.sources, run.target): run for run in control_runs(made)}


def test_the_paper_with_all_controls_is_8940_distinct_trainings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    preset = ROOT / "workflow/presets/paper.yaml"
    study = load_config(preset, {"multi_source": {"mode": "off"}, "controls": "all"})
    made = build(study)
    counts = Counter(run.algorithm for run in control_runs(made))
    assert counts == {"self_transfer": 255, "longer_baseline": 255, "shuffled_source": 1980}
    assert len(transfer_runs(made)) == 6195
    assert len(made.stages) == 8940
    assert len(made.derived) == 2 * 5  # a permutation per dataset and seed
    # Beside runs of several sources, `plan` counts those that are without.
    from tasktransfer.designs import open_study  # noqa: PLC0415

    seen = overview(open_study(preset, {"controls": "all"}, need_inputs=False))
    assert seen["trainings"]["without_variants"] == 8940


def test_without_controls_nothing_changes() -> None:
    before, after = build(three_tasks()), build(three_tasks(controls="all"))
    of_runs = {stage.digest for run in transfer_runs(after) for stage in run.stages}
    assert of_runs == {stage.digest for stage in before.stages}
    assert transfer_runs(before) == transfer_runs(after)
    assert control_runs(before) == ()
    assert three_tasks(controls=[]).digest == three_tasks().digest
    assert three_tasks(controls="all").digest != three_tasks().digest


def test_keeping_all_checkpoints_is_the_study_that_it_was() -> None:
    kinds = ["baseline", "pretrain", "multitask", "finetune"]
    every, before = ({"checkpoints": {"keep": keep}} for keep in ("all", kinds))
    assert three_tasks(**every).digest == three_tasks(**before).digest
    assert "shuffled" in three_tasks(**every).checkpoints.keep


def test_self_transfer_starts_from_the_targets_own_baseline() -> None:
    made = build(three_tasks(controls=["self_transfer"]))
    first, second = controls_of(made)["self_transfer", (), C].stages
    (baseline,) = [
        r.scored for r in transfer_runs(made) if (r.algorithm, r.target) == ("baseline", C)
    ]
    assert first is baseline
    assert second.parents == (first,)
    assert first.train_tasks == second.train_tasks == (C,)
    assert first.digest != second.digest


def test_the_longer_baseline_has_twice_the_epochs_and_nothing_else() -> None:
    study = three_tasks(controls=["longer_baseline"], training={"epochs": 7})
    (stage,) = controls_of(build(study))["longer_baseline", (), C].stages
    assert stage.training.epochs == 14
    twice = build(three_tasks(training={"epochs": 14}))
    assert (stage.digest, stage.path) in {(one.digest, one.path) for one in twice.stages}


def test_a_shuffled_source_is_the_transfer_on_permuted_labels() -> None:
    made = build(three_tasks(controls=["shuffled_source"], seeds=2))
    runs = {(r.sources, r.target, r.seed): r for r in control_runs(made)}
    first, second = runs[(A,), C, 1].stages
    transfer = {(r.algorithm, r.sources, r.target, r.seed): r for r in transfer_runs(made)}
    source, target = transfer["pretrain_finetune", (A,), C, 1].stages
    assert first.digest != source.digest
    assert (first.train_tasks, first.selection, first.training) == (
        source.train_tasks,
        source.selection,
        source.training,
    )
    assert first.data == Data(
        "DailyDialog", "d", {"few_sample": True, "seed": 1}, "shuffled_labels"
    )
    assert second.data == target.data
    assert second.parents == (first,)
    assert (first.kind, first.label, second.label) == (
        "shuffled",
        "ER-shuffled",
        "TC_from_ER-shuffled",
    )
    # One shuffled training of a source serves all its targets; other seeds permute otherwise.
    assert runs[(A,), B, 1].stages[0] is first
    assert runs[(A,), B, 0].stages[0].data != first.data
    assert len({stage.path for stage in made.stages}) == len(made.stages)


def test_baselines_may_have_more_seeds_than_transfers() -> None:
    plain, made = build(three_tasks(seeds=2)), build(three_tasks(seeds=2, baseline_seeds=20))
    seeds: dict[str, set[int]] = {}
    for run in transfer_runs(made):
        seeds.setdefault(run.algorithm, set()).add(run.seed)
    assert seeds.pop("baseline") == set(range(20))
    assert all(each == {0, 1} for each in seeds.values())
    # 18 more baselines of three tasks, and nothing else.
    assert len(made.stages) == len(made.runs) == len(plain.runs) + 18 * 3
    assert {s.digest for s in plain.stages} < {s.digest for s in made.stages}
    assert three_tasks(baseline_seeds=None).digest == three_tasks().digest


def test_targets_of_pairs_alone_have_controls() -> None:
    datasets = {"DailyDialog": {"tasks": [A, B, C], "pairs": [{"source": A, "target": C}]}}
    made = build(three_tasks(datasets=datasets, controls="all"))
    assert set(controls_of(made)) == {
        ("self_transfer", (), C),
        ("longer_baseline", (), C),
        ("shuffled_source", (A,), C),
    }


def test_controls_come_in_one_order() -> None:
    study = three_tasks(controls=["shuffled_source", "self_transfer"])
    assert study.controls == ("self_transfer", "shuffled_source")
    assert three_tasks(controls="all").controls == tuple(CONTROLS)


def test_an_unknown_control_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"controls\[0\].*shuffled_source"):
        three_tasks(controls=["shufled_source"])


def test_controls_without_what_they_control_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"controls: found .* has no pretrain_finetune"):
        three_tasks(controls="all", algorithms=["multitask"])


def test_nothing_is_chosen_by_a_control_and_nothing_waits_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    auto = {"mode": "auto", "sources_per_target": 2}
    study, plain = three_tasks(controls="all", multi_source=auto), three_tasks(multi_source=auto)
    choice = plan.plan(study, revisions(study)).choice
    before = plan.plan(plain, revisions(plain)).choice
    assert choice is not None
    assert before is not None
    assert [s.digest for s in choice.stages] == [s.digest for s in before.stages]
