"""Expected gains from a selector's values, and ``recommend`` on a finished matrix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from declared_files import TURNS, as_jsonl, dialogue
from small_study import SMALL, parse

from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.recommend import (
    list_baseline_warnings,
    list_transfer_algorithms,
    parse_question,
)
from tasktransfer.errors import ConfigError
from tasktransfer.results.revisions import find_revisions
from tasktransfer.results.study import Study
from tasktransfer.selection import recommend as recommending
from tasktransfer.selection.evidence import (
    FACTS,
    collect_dev_gains,
    count_shared_labels,
    read_shipped_evidence,
)
from tasktransfer.selection.expected_gain import fit_expected_gain
from tasktransfer.selection.recommend import (
    Question,
    Recommendation,
    as_text,
    list_useful_selectors,
    recommend_sources,
)
from tasktransfer.selection.values import find_unlearned

SOURCES = ("dialogue_nli", "emotion_recognition")
QUESTION = Question("DailyDialog", "topic_classification", SOURCES)


def study(**more: Any) -> Study:
    config = parse({**SMALL, **more})
    revisions, absent = find_revisions(config, need_inputs=False)
    from tasktransfer.designs.transfer.study_plan import plan_study  # noqa: PLC0415

    return Study(config, "study.yaml", {}, revisions, absent, plan_study)


def grid(slope: float, noise: float, targets: int = 20) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    values = random.normal(size=(targets, 8))
    gains = 1 + slope * values + random.normal(0, noise, (targets, 8))
    return values, gains


def test_sources_are_ranked_for_the_algorithms_that_a_study_trains() -> None:
    default = ["pretrain_finetune", "multitask", "multitask_finetune"]
    assert list_transfer_algorithms(study()) == default
    assert list_transfer_algorithms(study(algorithms=["baseline", "multitask"])) == ["multitask"]


def test_a_selector_that_tells_gains_promises_them() -> None:
    values, gains = grid(slope=2.0, noise=0.5)
    found = fit_expected_gain(values, gains)
    assert found is not None
    assert found.slope == pytest.approx(1.8, abs=0.3)  # in deviations
    assert found.error < 0.6 * found.constant_error
    assert found.covered >= 0.9
    expected, low, high = found.predict_gains(np.array([-1.0, 0, 1]))
    assert list(expected) == sorted(expected)
    assert (low < expected).all() and (expected < high).all()


def test_noise_promises_the_mean_gain_and_two_targets_nothing() -> None:
    values, gains = grid(slope=0.0, noise=1.0)
    found = fit_expected_gain(values, gains)
    assert found is not None
    assert abs(found.slope) < 0.25
    assert found.error == pytest.approx(found.constant_error, rel=0.05)
    assert fit_expected_gain(*grid(1.0, 1.0, targets=2)) is None


ALGORITHMS = ("pretrain_finetune", "multitask")
TARGETS = ("topic_classification", *(f"t{number}" for number in range(11)))


def build(slope: float, targets: Sequence[str] = TARGETS, **more: Any) -> pd.DataFrame:
    """Return evidence in which ``logme`` predicts the gains of one algorithm with a slope.

    The gains of the other algorithm are noise.
    """
    random = np.random.default_rng(2)
    rows = []
    for algorithm in ALGORITHMS:
        for target in targets:
            for source in ("emotion_recognition", "s1", "s2", "s3", "s4"):
                value = random.normal()
                gain = random.normal() + (slope * value if algorithm == ALGORITHMS[0] else 0)
                for seed in (0, 1):
                    delta = gain + random.normal(0, 0.1)
                    scores = {"score": 50 + delta, "delta": delta, "dev_delta": random.normal()}
                    names = {"algorithm": algorithm, "source": source, "target": target}
                    rows.append({**names, "seed": seed, **scores, "logme": value})
    facts = {"dataset": "DailyDialog", "weights": "w", "learned": True, **more}
    frame = pd.DataFrame(rows).assign(**facts)
    return frame[[*FACTS, "logme"]]


def rank(evidence: pd.DataFrame) -> Recommendation:
    values = {"logme": {"emotion_recognition": 0.0, "dialogue_nli": 2.0}}
    return recommend_sources(QUESTION, values, evidence, "a matrix", ALGORITHMS)


def test_a_selector_that_beats_random_ranks_for_its_algorithm_alone() -> None:
    first, second = rank(build(slope=5)).rankings
    assert first.ranked_by == "logme" and first.is_significant
    assert [one.source for one in first.sources] == ["dialogue_nli", "emotion_recognition"]
    best, other = first.sources
    assert best.expected_gain is not None and other.expected_gain is not None
    assert best.low is not None and best.low < best.expected_gain
    assert best.expected_gain > other.expected_gain + 2
    assert second.ranked_by == "source_mean" and not second.is_significant
    text = as_text(rank(build(slope=5)))
    assert "pretrain_finetune: ranked by logme" in text
    assert "multitask: no significant difference between the sources" in text


def test_noise_is_called_no_significant_difference() -> None:
    told = rank(build(slope=0))
    assert not any(ranking.is_significant for ranking in told.rankings)
    assert "selectors: [probe]" in told.next_steps[0]
    assert as_text(told).count("The order is not evidence") == 2


@pytest.mark.parametrize("slope", [0, 5])
def test_no_score_of_the_target_is_read(slope: float) -> None:
    """Neither test nor dev scores of transfers to the target change the recommendation."""
    evidence = build(slope)
    is_own = evidence["target"] == QUESTION.target
    changed = evidence.copy()
    scores = ["score", "delta", "dev_delta"]
    changed.loc[is_own, scores] = changed.loc[is_own, scores].to_numpy()[::-1] * -3
    told = [rank(each) for each in (evidence, changed)]
    assert told[0] == told[1]
    # The same change for another target does change it.
    changed.loc[evidence["target"] == "t1", scores] *= -3
    assert rank(changed) != told[0]


def test_evidence_of_similar_targets_counts_alone_if_there_is_enough() -> None:
    evidence = build(0)

    def shares(question: Question, task: tuple[str, str]) -> int:
        return 4 if task[1] in ("t1", "t2", "t3", "t4") else 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recommending, "_count_labels_in_common", shares)
        told = rank(evidence)
        assert [(ranking.targets, ranking.similar) for ranking in told.rankings] == [(4, True)] * 2
        assert "4 other targets with similar labels" in as_text(told)
        few = rank(evidence[~evidence["target"].isin(["t3", "t4"])])
    assert [(ranking.targets, ranking.similar) for ranking in few.rankings] == [(9, False)] * 2


def test_labels_are_shared_by_their_first_letters() -> None:
    emotions = ("joyful", "angry", "sad", "other")
    assert count_shared_labels(("joy", "anger", "sadness"), emotions) == 3
    assert count_shared_labels(("joy", "neutral", "other"), (*emotions, "neutral")) == 0
    assert count_shared_labels(("billing", "login"), ("login", "loyal", "joy")) == 0
    many = [f"{letter}ab" for letter in "abcdefghij"]
    assert count_shared_labels(many, (*many[:2], "xyz", "yzx", "zxy", "uvw", "vwu")) == 0


def test_targets_that_have_not_learned_do_not_judge() -> None:
    evidence = build(5)
    evidence["learned"] = ~evidence["target"].isin(["t1", "t2"])
    (ranking, *_) = rank(evidence).rankings
    assert (ranking.targets, ranking.unlearned) == (len(TARGETS) - 3, 2)
    assert "(another 2 left out, because their baselines have not learned)" in as_text(
        rank(evidence)
    )
    evidence["learned"] = False
    assert "no baseline of another target has learned its task" in as_text(rank(evidence))


def test_gains_on_targets_that_have_not_learned_are_not_averaged() -> None:
    evidence = build(5)
    evidence["learned"] = evidence["target"] != "t1"
    changed = evidence.copy()
    changed.loc[changed["target"] == "t1", "dev_delta"] += 50 * np.arange(
        (changed["target"] == "t1").sum()
    )
    assert as_text(rank(changed)) == as_text(rank(evidence))


EMOTIONS = ("joy", "anger", "sadness", "fear", "neutral")


@pytest.mark.usefixtures("here", "datasets_of_one_test")
def test_a_label_of_emotions_gets_sources_of_emotions_first() -> None:
    """The shipped matrix cannot tell sources apart, and the text says so."""
    rows = [dialogue("all", n) | {"mood": EMOTIONS[n % 5]} for n in range(20)]
    as_jsonl(Path("tickets.jsonl"), rows)
    mood = {"kind": "dialogue_classification", "label": "mood"}
    own = {
        "files": "tickets.jsonl",
        "shares": {"test": 0.25, "dev": 0.25},
        "dialogue": TURNS,
        "tasks": {"mood": mood},
    }
    config = {
        "study": "moods",
        "datasets": {
            "Tickets": own,
            "DailyDialog": {"tasks": "all"},
            "Friends": {"tasks": ["MELD_emotion_recognition", "character_identification"]},
        },
        "targets": ["Tickets/mood"],
        "sources": ["DailyDialog/*", "Friends/*"],
        "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
        "algorithms": ["baseline", "pretrain_finetune"],
        "training": {"epochs": 1},
    }
    Path("study.yaml").write_text(yaml.safe_dump(config))
    question = parse_question(open_study("study.yaml", need_inputs=False), "mood", [])
    values = {"kind": {source: float("emotion" not in source) for source in question.sources}}
    evidence = read_shipped_evidence()
    told = recommend_sources(question, values, evidence, "", ("pretrain_finetune",))
    (ranking,) = told.rankings
    first = [one.source for one in ranking.sources[:2]]
    assert sorted(first) == ["DailyDialog/emotion_recognition", "Friends/MELD_emotion_recognition"]
    assert ranking.targets == 9 and not ranking.is_significant
    text = as_text(told)
    assert "no significant difference between the sources" in text
    assert "Friends/MELD_emotion_recognition" in text.split("do not count")[1].splitlines()[0]
    assert "kind" not in text


def test_without_evidence_nothing_is_promised() -> None:
    told = rank(build(5)[:0])
    assert [ranking.ranked_by for ranking in told.rankings] == ["logme", "logme"]
    assert all(one.expected_gain is None for one in told.rankings[0].sources)
    text = as_text(told)
    assert "no evidence" in text and "expected gain on test" not in text


def test_two_targets_are_too_little_evidence() -> None:
    told = rank(build(5, targets=("t1", "t2")))
    assert not any(ranking.is_significant for ranking in told.rankings)
    assert "too little evidence, with 2 other targets" in as_text(told)


def test_only_values_that_can_change_the_ranking_are_computed() -> None:
    assert list_useful_selectors(QUESTION, build(5), ALGORITHMS) == ("logme",)
    assert list_useful_selectors(QUESTION, build(0), ALGORITHMS) == ()
    assert "logme" in list_useful_selectors(QUESTION, build(0)[:0], ALGORITHMS)
    assert "kind" not in list_useful_selectors(QUESTION, build(0)[:0], ALGORITHMS)


def test_a_source_of_another_dataset_has_its_gains_on_that_of_a_matrix() -> None:
    evidence = build(1, dataset="Friends")
    gains = collect_dev_gains(evidence, "Friends", "s1")
    assert gains.tolist() == evidence.query("source == 's1'")["dev_delta"].tolist()
    assert not len(collect_dev_gains(evidence, "DailyDialog", "s1"))


def states(state: str) -> pd.DataFrame:
    """Return the table ``references`` of the question's target."""
    row = {"dataset": QUESTION.dataset, "model": "bert", "target": QUESTION.target}
    scores = {"reference": "frozen_logistic", "reference_score": 30.0, "score": 20.0}
    interval = {"delta": -10.0, "low": -15.0, "high": -5.0, "q": 0.01}
    return pd.DataFrame([{**row, **scores, **interval, "is_best": True, "state": state}])


@pytest.mark.parametrize(("state", "warns"), [("not better", True), ("learned", False)])
def test_a_target_that_no_baseline_has_learned_gets_a_warning(state: str, warns: bool) -> None:
    text = "".join(list_baseline_warnings(QUESTION, states(state)))
    assert ("warning: The baseline has not learned" in text) is warns
    assert ("difference: −10.0 [−15.0, −5.0]" in text) is warns


def test_the_warning_names_the_model_if_there_are_several() -> None:
    both = pd.concat([states("learned"), states("not better").assign(model="gpt2")])
    (text,) = list_baseline_warnings(QUESTION, both)
    assert "1 of 2 baselines has not learned" in text
    assert f"{QUESTION.target} with gpt2" in text


def test_targets_that_no_baseline_has_learned_are_found_by_model() -> None:
    rows = states("collapsed")[["dataset", "model", "target"]]
    other = rows.assign(model="gpt2")
    both = pd.concat([rows, other], ignore_index=True)
    assert find_unlearned(both, states("collapsed")).tolist() == [True, False]
    assert find_unlearned(both, None).tolist() == [False, False]


def test_targets_and_sources_have_to_be_the_studys() -> None:
    asked = parse_question(study(), "topic_classification", [])
    assert asked == Question("DailyDialog", "topic_classification", SOURCES[::-1])
    assert parse_question(
        study(), "DailyDialog/topic_classification", ["dialogue_nli"]
    ).sources == ("dialogue_nli",)
    alone = {"sources": [], "algorithms": ["baseline"]}
    for keys, target, sources, why in (
        ({}, "nothing", [], "DailyDialog/topic_classification"),
        ({}, "topic_classification", ["question_answering"], "not a source"),
        ({}, "topic_clasification", [], r"Did you mean 'DailyDialog/topic_classification'\?"),
        (alone, "topic_classification", [], "The study has no source tasks to rank"),
    ):
        with pytest.raises(ConfigError, match=why):
            parse_question(study(**keys), target, sources)
