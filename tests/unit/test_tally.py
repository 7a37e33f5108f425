"""Metrics as functions of sums over instances, so that resampled instances can be scored."""

from __future__ import annotations

import random

import numpy as np
import pytest
from test_metrics import each_task, random_golds

from tasktransfer.datasets import get_task
from tasktransfer.metrics import (
    CodedAnswers,
    Scoring,
    compute_metrics_from_sums,
    compute_task_score,
    encode_answers,
    evaluate_predictions,
    tally_instances,
)
from tasktransfer.tasks.card import Task

FIDELITIES: tuple[Scoring, ...] = ("default", "tlidb")
ACT = get_task("DailyDialog", "dialogue_act_classification")
QUESTIONS = get_task("Friends", "question_answering")

Answers = list[tuple[str, ...]]


def a_case(task: Task, size: int, chance: random.Random) -> tuple[Answers, Answers]:
    """Return predictions of which a third are correct and a few are not answers."""
    golds = random_golds(task, size, chance)
    guesses = random_golds(task, size, chance)
    if task.kind == "span":
        guesses = [guess[:1] for guess in guesses]
    for place in chance.sample(range(size), size // 3):
        guesses[place] = golds[place][:1] if task.kind == "span" else golds[place]
    for place in chance.sample(range(size), size // 9):
        answers = 0 if task.kind == "multi_label" else len(task.outputs) or 1
        guesses[place] = ("no answer",) * answers
    return guesses, golds


@each_task
@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_resampled_tallies_give_the_metrics_of_the_resampled_answers(
    task: Task, fidelity: Scoring
) -> None:
    chance = random.Random(f"{task.name} {fidelity}")
    guesses, golds = a_case(task, 60, chance)
    each = tally_instances(task, guesses, golds, fidelity=fidelity)
    draws = [chance.choices(range(60), k=60) for _ in range(20)]
    weights = np.array([np.bincount(draw, minlength=60) for draw in draws])
    resampled = compute_metrics_from_sums(task, weights @ each, fidelity=fidelity)
    for number, draw in enumerate(draws):
        wanted = evaluate_predictions(
            task, [guesses[i] for i in draw], [golds[i] for i in draw], fidelity=fidelity
        )
        found = {key: values[number] for key, values in resampled.items()}
        assert found == pytest.approx(wanted, abs=1e-9)
        assert compute_task_score(task, resampled)[number] == pytest.approx(
            compute_task_score(task, wanted), abs=1e-9
        )


@each_task
def test_coded_answers_are_scored_like_tuples(task: Task) -> None:
    guesses, golds = a_case(task, 60, random.Random(task.name))
    assert evaluate_predictions(
        task, encode_answers(guesses), encode_answers(golds)
    ) == evaluate_predictions(task, guesses, golds)


def test_coded_answers_keep_their_order_and_their_empty_entries() -> None:
    found = encode_answers([("b", "a"), (), ("a",)])
    assert (found.texts, found.codes.tolist(), found.starts.tolist()) == (
        ("b", "a"),
        [0, 1, 1],
        [0, 2, 2, 3],
    )
    assert [found.get_answers(place) for place in range(3)] == [("b", "a"), (), ("a",)]
    assert found.sizes.tolist() == [2, 0, 1]


def test_tally_of_labels_worked() -> None:
    golds = [("inform",), ("question",), ("question",)]
    guesses = [("inform",), ("inform",), ("what?",)]
    each = tally_instances(ACT, guesses, golds)
    # Micro-F1: hits, guesses, wanted of all classes, -1 included.
    assert each[:, :3].tolist() == [[1, 1, 1], [0, 1, 1], [0, 1, 1]]
    # Macro-F1: hits, guesses and wanted of the four acts.
    assert each[:, 3:7].tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert each[:, 7:11].tolist() == [[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert each[:, 11:].tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]]


def test_tally_of_texts_worked() -> None:
    each = tally_instances(
        QUESTIONS, [("red cat",), ("Joey",)], [("tea", "red cat ran"), ("the joey",)]
    )
    # Exact match and instances, token-F1 and instances, tokens in common, predicted and right.
    assert each.tolist() == [[0, 1, pytest.approx(4 / 5), 1, 2, 2, 3], [1, 1, 1, 1, 1, 1, 1]]


def test_sums_of_any_shape_are_finished() -> None:
    guesses, golds = a_case(ACT, 30, random.Random(1))
    each = tally_instances(ACT, guesses, golds)
    stacked = np.stack([each[:10], each[10:20], each[20:]])
    values = compute_metrics_from_sums(ACT, stacked.sum(axis=1))
    assert values["macro_f1"].shape == (3,)
    assert values["macro_f1"][1] == pytest.approx(
        evaluate_predictions(ACT, guesses[10:20], golds[10:20])["macro_f1"]
    )


def test_nothing_counted_is_0() -> None:
    assert compute_metrics_from_sums(ACT, np.zeros(15)) == {"micro_f1": 0.0, "macro_f1": 0.0}
    assert isinstance(encode_answers([("a",)]), CodedAnswers)
