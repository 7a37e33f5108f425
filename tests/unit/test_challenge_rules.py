"""A study under the challenge's rules that breaks them is refused before training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from challenge_records import FRIENDS, finish_all, make_study
from small_study import SMALL, changed, parse

from tasktransfer.cli import main
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer import plan
from tasktransfer.designs.transfer.challenge_rules import MEANING, explain_ineligibility
from tasktransfer.designs.transfer.config import TransferConfig
from tasktransfer.designs.transfer.plan import MultiSource, Revisions
from tasktransfer.designs.transfer.runs import select_transfer_runs
from tasktransfer.errors import ConfigError
from tasktransfer.results.records import read_record

DD = ("datasets", "DailyDialog")
ALL_DD = list(DATASETS["DailyDialog"].tasks)


def named(target: str, *sources: str, dataset: str = "DailyDialog") -> dict[str, Any]:
    item = {"dataset": dataset, "target": target, "sources": list(sources)}
    return {"mode": "named", "named": [item]}


FORBIDDEN: list[tuple[str, str, dict[str, Any], list[str]]] = [
    (
        "full data",
        "few-sample data",
        changed("data", to={"few_sample": False}),
        ["data.few_sample: The value is false", "Set it to true", "cannot be submitted"],
    ),
    (
        "a part of the test set",
        "whole test set",
        changed("training", to={"limit_test": 100}),
        ["training.limit_test: The value is 100", "Remove it"],
    ),
    (
        "a pair across datasets",
        "sources from the same dataset",
        changed(*DD, "pairs", to=[{"source": "question_answering", "target": "dialogue_nli"}]),
        ["pairs[0].source: 'question_answering' is a task of Friends, not of DailyDialog"],
    ),
    (
        "a target of the other dataset",
        "sources from the same dataset",
        changed(*DD, "targets", to=["question_answering"]),
        ["datasets.DailyDialog.targets[0]: 'question_answering' is a task of Friends"],
    ),
    (
        "one of several sources from the other dataset",
        "sources from the same dataset",
        changed(
            "multi_source", to=named("dialogue_nli", "emotion_recognition", "question_answering")
        ),
        ["multi_source.named[0].sources[1]: 'question_answering' is a task of Friends"],
    ),
    (
        "more than n - 1 sources",
        "1 to n - 1 sources",
        changed("multi_source", to=named("dialogue_nli", *ALL_DD)),
        ["multi_source.named[0].sources: dialogue_nli has 10 sources, but DailyDialog has 9"],
    ),
    (
        "more than n - 1 sources to be picked",
        "1 to n - 1 sources",
        changed("multi_source", to={"mode": "auto", "sources_per_target": 7}),
        ["multi_source.sources_per_target: A target has 7 sources, but Friends has 6"],
    ),
    (
        "a pair of a task with itself",
        "no target among its own sources",
        changed(*DD, "pairs", to=[{"source": "dialogue_nli", "target": "dialogue_nli"}]),
        ["datasets.DailyDialog.pairs[0]: 'dialogue_nli' is its own source"],
    ),
]


@pytest.mark.parametrize(
    ("rule", "study", "told"), [case[1:] for case in FORBIDDEN], ids=[c[0] for c in FORBIDDEN]
)
def test_what_the_rules_forbid_is_refused_with_rule_and_key(
    rule: str, study: dict[str, Any], told: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse({**study, "rules": "challenge"})
    message = str(caught.value)
    assert f"against the challenge's rule {rule!r} ({MEANING[rule]})" in message
    for text in told:
        assert text in message
    keys = [line.split(": ")[1] for line in message.splitlines() if line.startswith("  study.yaml")]
    assert len(keys) == len(set(keys)), "a key is told of once, with its rule"


def test_every_rule_has_its_refusal() -> None:
    assert {case[1] for case in FORBIDDEN} == set(MEANING)


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        {"rules": "challenge", "datasets": [1], "multi_source": {"named": [None, {"dataset": 1}]}},
    ],
)
def test_a_damaged_study_under_the_rules_is_refused_as_any(damaged: Any) -> None:
    with pytest.raises(ConfigError):
        parse(damaged)


# --- the plan ---


def revisions(study: TransferConfig) -> Revisions:
    models = {m.name: ModelSpec(m.name, m.family, "tiny:0", m.max_length) for m in study.models}
    return Revisions({d.name: "r" for d in study.datasets}, models)


def challenge(**changes: Any) -> TransferConfig:
    return parse({**SMALL, "rules": "challenge", **changes})


def test_the_rules_change_no_digest() -> None:
    """Records that satisfy the rules can be used in a challenge study, whoever trained them."""
    under, free = challenge(), parse(SMALL)
    digests = [[s.digest for s in plan.build_plan(c, revisions(c)).stages] for c in (under, free)]
    assert digests[0] == digests[1]
    assert under.digest != free.digest


@pytest.mark.parametrize(
    ("selected", "rule"),
    [
        (MultiSource("DailyDialog", "dialogue_nli", ("question_answering",)), "same dataset"),
        (MultiSource("DailyDialog", "dialogue_nli", tuple(ALL_DD)), "1 to n - 1 sources"),
        (
            MultiSource("DailyDialog", "dialogue_nli", ("dialogue_nli", "emotion_recognition")),
            "no target among its own",
        ),
    ],
    ids=["other dataset", "too many", "itself"],
)
def test_the_plan_refuses_sources_however_they_were_picked(
    selected: MultiSource, rule: str
) -> None:
    study = challenge(
        multi_source={"mode": "auto", "targets_per_dataset": 1, "sources_per_target": 1}
    )
    with pytest.raises(ConfigError, match=rule) as caught:
        plan.build_plan(study, revisions(study), [selected])
    assert "on the target dialogue_nli with the model tiny-bert" in str(caught.value)


def test_validate_says_what_is_held_and_what_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(FRIENDS))
    assert main(["validate", "--config", str(path)]) == 0
    told = capsys.readouterr().out
    assert "rules: challenge, which require: only dialogues of the few-sample ids" in told
    assert "It is not checked whether a checkpoint has seen the test data" in told


# --- records ---


def finished_run(folder: Path, **changes: Any) -> tuple[Run, dict[str, Any]]:
    """Return a transfer run with its record, in a study that may be free."""
    study = make_study(folder, **changes)
    run = next(r for r in select_transfer_runs(study.plan) if r.method == "multitask")
    finish_all(study, lambda _: 50.0, wanted=lambda planned: planned == run)
    path = Path(study.get_record_path(run.stages[-1]))
    return run, dict(read_record(path))


def reasons(run: Run, record: dict[str, Any]) -> list[str]:
    return explain_ineligibility(
        run.about["dataset"], run.about["sources"], run.about["target"], record
    )


def test_a_record_that_keeps_the_rules_may_be_submitted(tmp_path: Path) -> None:
    run, record = finished_run(tmp_path)
    assert reasons(run, record) == []
    del record["provenance"]["rules"]
    assert reasons(run, record) == [], "from before the key: judged by its content"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"data": {"few_sample": False}}, "few-sample data"),
        ({"training": {"limit_test": 4}}, "whole test set"),
    ],
)
def test_records_of_free_studies_say_why_they_may_not(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    run, record = finished_run(tmp_path, rules="free", **change)
    record["few_sample"] = True  # a record cannot claim few samples against its identity
    told, free = reasons(run, record)
    assert "It comes from a study with `rules: free`" in free
    assert f"against the challenge's rule {reason!r} ({MEANING[reason]})" in told


def test_records_of_foreign_tasks_or_without_predictions(tmp_path: Path) -> None:
    run, record = finished_run(tmp_path)
    record["node"]["train_tasks"] = ["emotion_recognition", "question_answering"]
    assert reasons(run, record) == [
        "It was trained on emotion_recognition, which Friends does not have."
    ]
    record["rows"] = None
    assert reasons(run, record) == ["It has no predictions for a test set."]
