"""``check_baselines``: sources are trained only for targets whose baselines have learned."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from small_study import SMALL, parse, refusal

from finished_stages import opened
from tasktransfer.core.nodes import Fit, Stage
from tasktransfer.core.plan import Plan
from tasktransfer.designs.transfer.choices import (
    LEARNED_TARGETS,
    describe_skipped_targets,
    read_checked_targets,
)
from tasktransfer.designs.transfer.plan import build_plan
from tasktransfer.designs.transfer.runs import BASELINE, is_check, is_transfer
from tasktransfer.designs.transfer.statistics.choices import (
    compare_baselines_with_references,
)
from tasktransfer.designs.transfer.study_plan import plan_study
from tasktransfer.errors import RecordError
from tasktransfer.operate.overview import summarise_study
from tasktransfer.operate.status import ProgressWatcher
from tasktransfer.operate.status_text import as_text
from tasktransfer.results.planned_study import write_choice
from tasktransfer.results.revisions import find_revisions

TARGETS = ["dialogue_nli", "topic_classification"]
ASKED = {
    "check_baselines": True,
    "references": ["most_frequent", "tfidf_logistic"],
    "algorithms": ["baseline", "pretrain_finetune"],
    "datasets": {"DailyDialog": {"tasks": [*TARGETS, "emotion_recognition"]}},
    "targets": [f"DailyDialog/{task}" for task in TARGETS],
    "sources": ["DailyDialog/*"],
    "seeds": 2,
}


def ask(folder: Path, **more: Any) -> dict[str, Any]:
    return {**SMALL, **ASKED, "results": str(folder), **more}


def make_plan(folder: Path, **more: Any) -> Plan:
    config = parse(ask(folder, **more))
    revisions, _ = find_revisions(config, need_inputs=False)
    return plan_study(config, revisions)


def list_transfers(planned: Plan) -> set[str]:
    runs = [run for run in planned.runs if is_transfer(run) and run.method != BASELINE]
    return {f"{run.about['sources'][0]} > {run.about['target']}" for run in runs}


def list_baselines(planned: Plan) -> set[str]:
    return {run.about["target"] for run in planned.runs if run.method == BASELINE}


def choose(planned: Plan, dev: dict[str, list[float]], references: dict[str, float]) -> Any:
    """Return the checked targets for dev scores of baselines and of references."""

    def get_record(node: Stage | Fit) -> dict[str, Any]:
        if isinstance(node, Fit):
            return {"results": {task: {"score": references[node.learner]} for task in node.tasks}}
        (task,) = node.selection.tasks
        selection = {"select_on": [task], "round": 1, "dev_score": dev[task][node.seed]}
        return {"training": {"selections": [selection], "rounds": [{"round": 1, "dev": {}}]}}

    collected: Any = SimpleNamespace(runs=planned.runs, record=get_record)
    return compare_baselines_with_references(collected, {"DailyDialog": TARGETS})


def make_row(target: str, learned: bool = True) -> dict[str, Any]:
    """Return the row of a target, in the format of a version without digests."""
    names = {"dataset": "DailyDialog", "model": "tiny-bert", "target": target, "learned": learned}
    return names | {"dev_score": 2.0, "reference": "most_frequent", "reference_dev_score": 1.0}


ONE_LEARNED = [make_row(TARGETS[0]), make_row(TARGETS[1], learned=False)]


def test_before_the_check_only_baselines_of_targets_are_planned(tmp_path: Path) -> None:
    planned = make_plan(tmp_path)
    assert list_transfers(planned) == set()
    assert list_baselines(planned) == {*TARGETS}
    (choice,) = planned.choices
    assert (choice.name, choice.made) == (LEARNED_TARGETS, False)
    assert {type(node) for node in choice.after} == {Stage, Fit}
    assert {stage.kind for stage in choice.like} == {"baseline", "finetune"}


def test_status_announces_transfers_until_the_check(here: Path) -> None:
    line = "\ntransfers are trained once the baselines have been checked"
    study = opened(**ask(here))
    counted = summarise_study(study)["trainings"]["total"] - len(study.plan.stages)
    watcher = ProgressWatcher(study)
    text = as_text(watcher.get_progress())
    assert f"{line} (at most {counted})\n" in text and "multi-source" not in text
    racing = opened(**ask(here, racing={"seeds": [1, 2], "keep": [0.5]}))
    assert f"{line}\n" in as_text(ProgressWatcher(racing).get_progress())
    write_choice(here, LEARNED_TARGETS, [make_row(target) for target in TARGETS])
    assert " follow" not in as_text(watcher.get_progress())
    assert "trainings with more seeds follow when" in as_text(
        ProgressWatcher(racing).get_progress()
    )


def test_transfers_to_learned_targets_follow(tmp_path: Path) -> None:
    first = make_plan(tmp_path)
    dev = {"dialogue_nli": [50.0, 40.0], "topic_classification": [30.0, 60.0]}
    checked = choose(first, dev, {"most_frequent": 20.0, "tfidf_logistic": 45.0})
    assert [(row["target"], row["dev_score"], row["reference"]) for row in checked] == [
        ("dialogue_nli", 45.0, "tfidf_logistic"),
        ("topic_classification", 45.0, "tfidf_logistic"),
    ]
    assert not any(row["learned"] for row in checked)  # a tie is not better
    dev["topic_classification"] = [30.1, 60.0]
    checked = choose(first, dev, {"most_frequent": 20.0, "tfidf_logistic": 45.0})
    write_choice(tmp_path, LEARNED_TARGETS, checked)
    assert read_checked_targets(tmp_path) == checked
    second = make_plan(tmp_path)
    assert list_transfers(second) == {
        "dialogue_nli > topic_classification",
        "emotion_recognition > topic_classification",
    }
    assert list_baselines(second) == {*TARGETS, "emotion_recognition"}
    assert second.choices[0].made
    assert {n.digest for n in second.choices[0].after} == {n.digest for n in first.choices[0].after}
    (sentence,) = describe_skipped_targets(checked)
    assert sentence.startswith("Transfers to DailyDialog/dialogue_nli are not trained, because its")
    assert "(baseline 45.0, TF-IDF with logistic regression 45.0)" in sentence
    assert sentence.endswith("To train the transfers anyway, set check_baselines: false.")


def test_a_target_that_no_reference_predicts_keeps_its_transfers(tmp_path: Path) -> None:
    planned = make_plan(tmp_path)
    without = SimpleNamespace(runs=[run for run in planned.runs if not is_check(run)])
    dev = {task: [10.0, 20.0] for task in TARGETS}
    checked = choose(without, dev, {})  # type: ignore[arg-type]
    assert [(row["reference"], row["learned"]) for row in checked] == [(None, True)] * 2
    write_choice(tmp_path, LEARNED_TARGETS, checked)
    assert read_checked_targets(tmp_path) == checked
    assert len(list_transfers(make_plan(tmp_path))) == 4


def test_the_check_changes_no_other_node(tmp_path: Path) -> None:
    config = parse(ask(tmp_path))
    revisions, _ = find_revisions(config, need_inputs=False)
    without = build_plan(config.as_largest(), revisions)
    rows = [make_row(target) for target in TARGETS]
    write_choice(tmp_path, LEARNED_TARGETS, rows)
    planned = plan_study(config, revisions)
    more = {node.digest for run in planned.runs if is_check(run) for node in run.judged}
    assert {n.digest for n in planned.nodes} == {n.digest for n in without.nodes} | more
    fits = [node for node in planned.fits if node.digest in more]
    assert {fit.settings["split"] for fit in fits} == {"dev"}
    assert all("limit_test" not in fit.settings for fit in fits)


def test_a_race_starts_after_the_check(tmp_path: Path) -> None:
    racing = {"racing": {"seeds": [1, 2], "keep": [0.5]}}
    first = make_plan(tmp_path, **racing)
    assert [choice.name for choice in first.choices] == [LEARNED_TARGETS]
    assert {stage.seed for stage in first.stages} == {0}
    write_choice(tmp_path, LEARNED_TARGETS, ONE_LEARNED)
    second = make_plan(tmp_path, **racing)
    assert {c.name: c.made for c in second.choices} == {LEARNED_TARGETS: True, "race_1": False}
    assert list_transfers(second) == {
        "emotion_recognition > dialogue_nli",
        "topic_classification > dialogue_nli",
    }
    kept = {"dataset": "DailyDialog", "model": "tiny-bert", "algorithm": "pretrain_finetune"}
    pair = {"source": TARGETS[1], "target": TARGETS[0]}
    write_choice(tmp_path, "race_1", [kept | pair])
    third = make_plan(tmp_path, **racing)
    checked = [{node.digest for node in each.choices[0].after} for each in (first, second, third)]
    assert checked[0] == checked[1] == checked[2]  # later rounds do not change the check
    last = [stage for stage in third.stages if stage.seed == 1]
    assert [s.train_tasks for s in last if s.kind != BASELINE] == [(TARGETS[0],)]
    assert len([s for s in last if s.kind == BASELINE]) == 3  # baselines do not race


def test_a_race_with_references_is_checked_by_default(tmp_path: Path) -> None:
    document = ask(tmp_path, racing={"seeds": [1, 2], "keep": [0.5]})
    del document["check_baselines"]
    for keys, checked in (
        ({}, True),
        ({"check_baselines": False}, False),
        ({"references": []}, False),
    ):
        config = parse(document | keys)
        revisions, _ = find_revisions(config, need_inputs=False)
        choices = [choice.name for choice in plan_study(config, revisions).choices]
        assert (LEARNED_TARGETS in choices) is checked is config.checks_baselines
    assert parse(document).build_digest_content()["check_baselines"] is True


def test_a_race_without_learned_targets_ends_with_the_check(tmp_path: Path) -> None:
    write_choice(tmp_path, LEARNED_TARGETS, [make_row(task, learned=False) for task in TARGETS])
    planned = make_plan(tmp_path, racing={"seeds": [1, 2], "keep": [0.5]})
    assert [choice.name for choice in planned.choices] == [LEARNED_TARGETS]
    assert list_transfers(planned) == set()


def test_selectors_read_the_pairs_that_have_transfers(tmp_path: Path) -> None:
    def list_selected(planned: Plan) -> set[str]:
        runs = [run for run in planned.runs if run.method == "selector"]
        return {task for run in runs for task in run.about["sources"]}

    assert list_selected(make_plan(tmp_path, selectors=["embedding"])) == set()
    write_choice(tmp_path, LEARNED_TARGETS, ONE_LEARNED)
    planned = make_plan(tmp_path, selectors=["embedding"])
    assert list_selected(planned) == {*TARGETS, "emotion_recognition"}


def test_an_outdated_check_is_refused(tmp_path: Path) -> None:
    dev = {task: [50.0, 60.0] for task in TARGETS}
    checked = choose(make_plan(tmp_path), dev, {"most_frequent": 20.0, "tfidf_logistic": 45.0})
    write_choice(tmp_path, LEARNED_TARGETS, checked)
    make_plan(tmp_path, seeds=3)  # more seeds of the same baselines
    for more, problem in (
        ({"training": {"epochs": 9}}, "does not match the current baselines"),
        ({"targets": ["DailyDialog/emotion_recognition"]}, "does not contain"),
    ):
        with pytest.raises(RecordError, match=problem) as error:
            make_plan(tmp_path, **more)
        assert "learned_targets.json: The config has changed" in str(error.value)
        assert "Delete the file to repeat the check" in str(error.value)


def test_a_damaged_choice_is_named(tmp_path: Path) -> None:
    write_choice(tmp_path, LEARNED_TARGETS, [{"dataset": "DailyDialog"}])
    with pytest.raises(RecordError, match=r"learned_targets\.json: The file is damaged"):
        read_checked_targets(tmp_path)


def test_an_unset_key_is_not_part_of_the_digest(tmp_path: Path) -> None:
    without = parse(ask(tmp_path, check_baselines=False))
    assert "check_baselines" not in json.dumps(without.build_digest_content(), default=str)
    assert parse(ask(tmp_path)).build_digest_content()["check_baselines"] is True


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"references": []}, "but the study has none of most_frequent"),
        ({"references": ["contrastive_logistic"]}, "but the study has none of most_frequent"),
        (
            {"algorithms": ["baseline"], "targets": None, "sources": None},
            "The study trains baselines only",
        ),
        ({"multi_source": {"mode": "auto"}}, "cannot be combined with multi_source"),
    ],
)
def test_what_the_check_cannot_be_combined_with(
    keys: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    assert problem in refusal({**ask(tmp_path), **keys})
