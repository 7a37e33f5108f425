"""Scoring: shapes, errors, and properties for any predictions."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasktransfer.datasets import ALL_TASKS, get_task
from tasktransfer.errors import ConfigError, DataError, RecordError
from tasktransfer.metrics import (
    compute_task_score,
    evaluate_predictions,
    normalise_answer,
    score_instances,
)
from tasktransfer.tasks.card import MetricSpec, Task

ACT = get_task("DailyDialog", "dialogue_act_classification")
CAUSAL_SPAN = get_task("DailyDialog", "causal_emotion_span_extraction")
EMOTION = get_task("DailyDialog", "emotion_recognition")
RESPONSE = get_task("DailyDialog", "adversarial_response_selection")
PERSONALITY = get_task("Friends", "personality_detection")
QUESTIONS = get_task("Friends", "question_answering")
READING = get_task("Friends", "reading_comprehension")
RELATIONS = get_task("Friends", "relation_extraction")

each_task = pytest.mark.parametrize("task", ALL_TASKS, ids=lambda task: task.name)
WORDS = ("the", "Cat", "dog.", "a", "ran", "red", "it's", "phone!", "impossible")


def random_golds(task: Task, size: int, chance: random.Random) -> list[tuple[str, ...]]:
    if task.kind == "span":
        texts = [" ".join(chance.choices(WORDS, k=4)) for _ in range(size)]
        return [(text, *chance.choices(texts, k=chance.randrange(2))) for text in texts]
    if task.kind == "multi_label":
        return [tuple(chance.sample(task.labels, chance.randrange(1, 4))) for _ in range(size)]
    answers = len(task.outputs) or 1
    return [tuple(chance.choices(task.labels, k=answers)) for _ in range(size)]


def answerless(task: Task) -> tuple[str, ...]:
    """Return the predictions of a text-to-text model that only generates nonsense."""
    return () if task.kind == "multi_label" else ("zzz",) * (len(task.outputs) or 1)


# --- properties that hold for every task -----------------------------------------------------


@each_task
def test_right_answers_score_100_in_both_fidelities(task: Task) -> None:
    golds = random_golds(task, 200, random.Random(3))
    right = [gold[:1] for gold in golds] if task.kind == "span" else golds
    for fidelity in ("default", "tlidb"):
        metrics = evaluate_predictions(task, right, golds, fidelity=fidelity)
        assert list(metrics) == [spec.key for spec in task.metrics]
        assert compute_task_score(task, metrics) == pytest.approx(100.0)
        # The toolkit's micro token-F1 takes the last right answer with any overlap.
        if fidelity == "tlidb":
            metrics.pop("micro_token_f1", None)
        assert metrics == pytest.approx(dict.fromkeys(metrics, 100.0))
    assert score_instances(task, right, golds) == pytest.approx([100.0] * 200)


@each_task
def test_nonsense_scores_0_in_both_fidelities(task: Task) -> None:
    golds = random_golds(task, 50, random.Random(4))
    if task.kind == "multi_label":
        golds = [(task.labels[0],)] * 50
    wrong = [answerless(task)] * 50
    for fidelity in ("default", "tlidb"):
        metrics = evaluate_predictions(task, wrong, golds, fidelity=fidelity)
        assert metrics == dict.fromkeys(metrics, 0.0)
    assert score_instances(task, wrong, golds) == [0.0] * 50


@each_task
def test_order_of_instances_does_not_matter(task: Task) -> None:
    chance = random.Random(5)
    golds = random_golds(task, 60, chance)
    guesses = [gold[:1] if task.kind == "span" else gold for gold in random_golds(task, 60, chance)]
    shuffled = list(zip(guesses, golds, strict=True))
    chance.shuffle(shuffled)
    again = evaluate_predictions(task, [p for p, _ in shuffled], [g for _, g in shuffled])
    assert again == pytest.approx(evaluate_predictions(task, guesses, golds))
    assert all(0.0 <= value <= 100.0 for value in again.values())


@each_task
def test_a_whole_test_split_is_scored_quickly(task: Task) -> None:
    chance = random.Random(6)
    golds = random_golds(task, 16_000, chance)
    guesses = [gold[:1] if task.kind == "span" else gold for gold in golds]
    chance.shuffle(guesses)
    start = time.process_time()
    evaluate_predictions(task, guesses, golds)
    # A fifth of a second is the aim; the bound leaves room for a busy machine.
    assert time.process_time() - start < 1.0


def test_mean_instance_score_is_accuracy_and_macro_token_f1() -> None:
    chance = random.Random(7)
    for task, key in ((ACT, "micro_f1"), (PERSONALITY, "accuracy"), (QUESTIONS, "macro_token_f1")):
        golds = random_golds(task, 80, chance)
        guesses = random_golds(task, 80, chance)
        if task is QUESTIONS:
            guesses = [guess[:1] for guess in guesses]
        each = score_instances(task, guesses, golds)
        assert sum(each) / 80 == pytest.approx(evaluate_predictions(task, guesses, golds)[key])


# --- instance scores, worked -----------------------------------------------------------------


def test_instance_scores_of_one_label() -> None:
    assert score_instances(ACT, [("inform",), ("question",), ("hm",)], [("inform",)] * 3) == [
        100.0,
        0.0,
        0.0,
    ]
    assert score_instances(RESPONSE, [("0",), ("2",)], [("0",), ("1",)]) == [100.0, 0.0]


def test_instance_scores_of_traits_are_the_share_got_right() -> None:
    gold = ("1", "0", "1", "0", "1")
    assert score_instances(PERSONALITY, [("1", "1", "1", "0", "maybe")], [gold]) == [60.0]


def test_instance_scores_of_spans() -> None:
    golds = [("a red dog", "the red cat ran off")]
    # red, cat of red, cat, ran, off: precision 1, recall 1/2.
    assert score_instances(QUESTIONS, [("red cat",)], golds) == pytest.approx([200 / 3])
    assert score_instances(READING, [("red cat",), ("The Joey!",)], [*golds, ("joey",)]) == [
        0.0,
        100.0,
    ]
    assert score_instances(CAUSAL_SPAN, [("",), ("a cat",)], [("Impossible answer",)] * 2) == [
        100.0,
        0.0,
    ]


def test_instance_scores_of_labels_count_scored_ones_only() -> None:
    golds = [("per:boss", "per:dates"), ("unanswerable",), ("unanswerable",), ("per:boss",)]
    guesses = [("per:boss",), ("org:students",), ("per:boss",), ("per:boss", "unanswerable")]
    assert score_instances(RELATIONS, guesses, golds) == pytest.approx([200 / 3, 100.0, 0.0, 100.0])


# --- score -----------------------------------------------------------------------------------


def test_score_is_the_mean_of_the_paper_s_metrics_only() -> None:
    metrics = {"exact_match": 10.0, "macro_token_f1": 30.0, "micro_token_f1": 99.0}
    assert compute_task_score(QUESTIONS, metrics) == 20.0


def test_a_card_without_paper_metrics_is_scored_by_all() -> None:
    metrics = {"exact_match": 10.0, "macro_token_f1": 30.0, "micro_token_f1": 80.0}
    assert compute_task_score(replace(QUESTIONS, paper_metrics=()), metrics) == 40.0


def test_missing_metric_is_named() -> None:
    with pytest.raises(RecordError, match="macro_token_f1 is missing"):
        compute_task_score(QUESTIONS, {"exact_match": 10.0})


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [evaluate_predictions, score_instances])
@pytest.mark.parametrize(
    ("task", "predictions", "golds", "message"),
    [
        (ACT, [], [], "no instances to score"),
        (ACT, [("inform",)], [("inform",)] * 2, "1 predictions for 2 instances"),
        (ACT, [()], [("inform",)], "prediction at position 0 has 0 parts"),
        (ACT, [("inform",)] * 2, [("inform",), ("chat",)], r"Gold answer 1 is \('chat',\)"),
        (ACT, [("inform",)], [("inform", "question")], "gold answer at position 0 has 2 "),
        (PERSONALITY, [("1",) * 4], [("1",) * 5], "prediction at position 0 has 4 parts"),
        (QUESTIONS, [("a", "b")], [("a",)], "prediction at position 0 has 2 parts"),
        (QUESTIONS, [("a",)], [()], "Instance 0 has no gold answer"),
        (RELATIONS, [()], [("boss",)], r"Gold answer 0 is \('boss',\)"),
    ],
)
def test_answers_of_a_wrong_shape_are_refused(
    function: object, task: Task, predictions: object, golds: object, message: str
) -> None:
    assert callable(function)
    with pytest.raises(DataError, match=message):
        function(task, predictions, golds)


def test_exact_match_without_an_answerable_instance_has_no_value() -> None:
    with pytest.raises(DataError, match="all 2 instances are unanswerable"):
        evaluate_predictions(CAUSAL_SPAN, [("x",)] * 2, [("Impossible answer",)] * 2)


@pytest.mark.parametrize(
    ("task", "spec", "gold"),
    [
        (ACT, MetricSpec("f1"), "inform"),
        (QUESTIONS, MetricSpec("token_f1"), "x"),
        (QUESTIONS, MetricSpec("token_f1", "weighted"), "x"),
    ],
)
def test_card_without_a_usable_average_is_refused(task: Task, spec: MetricSpec, gold: str) -> None:
    with pytest.raises(ConfigError, match="Use micro or macro"):
        evaluate_predictions(replace(task, metrics=(spec,)), [(gold,)], [(gold,)])


# --- normalisation ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The  Dog!", "dog"),
        ("an apple, a day", "apple day"),
        ("It's the-end", "its theend"),
        ("Theatre anna", "theatre anna"),
        ("\tA\n", ""),
        ("", ""),
    ],
)
def test_normalise_answer(text: str, plain: str) -> None:
    assert normalise_answer(text) == plain


@given(st.text())
def test_normalised_text_has_no_stray_space(text: str) -> None:
    plain = normalise_answer(text)
    assert plain == " ".join(plain.split())
