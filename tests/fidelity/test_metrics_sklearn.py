"""Every metric compared with scikit-learn or a worked example, in both fidelities."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sklearn.metrics import accuracy_score, f1_score

from tasktransfer.datasets import ALL_TASKS, get_task
from tasktransfer.metrics import Scoring, evaluate_predictions
from tasktransfer.tasks.card import MetricSpec, Task

FIDELITIES: tuple[Scoring, ...] = ("default", "tlidb")
ONE_LABEL = [task for task in ALL_TASKS if task.kind not in ("span", "multi_label", "multi_output")]
each_classification = pytest.mark.parametrize("task", ONE_LABEL, ids=lambda task: task.name)
seeds = pytest.mark.parametrize("seed", range(3))

ACT = get_task("DailyDialog", "dialogue_act_classification")
CAUSAL_SPAN = get_task("DailyDialog", "causal_emotion_span_extraction")
EMOTION = get_task("DailyDialog", "emotion_recognition")
SPAN = get_task("DailyDialog", "dialogue_reasoning_span_extraction")
PERSONALITY = get_task("Friends", "personality_detection")
QUESTIONS = get_task("Friends", "question_answering")
RELATIONS = get_task("Friends", "relation_extraction")


@pytest.fixture(autouse=True)
def quiet_scikit_learn() -> Iterator[None]:
    """Silence warnings about an undefined F1, which is set to 0 here too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def sklearn_f1(right: list[Any], guesses: list[Any], **settings: Any) -> float:
    return 100.0 * float(f1_score(right, guesses, **settings))


def random_case(
    task: Task, seed: int, *, invalid: bool
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]], list[int], list[int]]:
    """Sample predictions and golds as labels and as class numbers, with -1 for invalid labels.

    Half of the cases use few labels, so that some classes occur only on one side or not at all.
    """
    chance = random.Random(f"{task.name} {seed} {invalid}")
    size = chance.randrange(1, 60)
    labels = task.labels if seed % 2 else chance.sample(task.labels, 2)
    golds = [(chance.choice(labels),) for _ in range(size)]
    pool = (*task.labels, "no label", "") if invalid else task.labels
    guesses = [gold if chance.random() < 0.4 else (chance.choice(pool),) for gold in golds]
    number = {label: i for i, label in enumerate(task.labels)}
    return (
        guesses,
        golds,
        [number.get(guess, -1) for (guess,) in guesses],
        [number[gold] for (gold,) in golds],
    )


# --- one label -------------------------------------------------------------------------------


@seeds
@each_classification
@pytest.mark.parametrize("fidelity", FIDELITIES)
@pytest.mark.parametrize("invalid", [False, True])
def test_metrics_of_one_label_equal_scikit_learn(
    task: Task, seed: int, fidelity: Scoring, invalid: bool
) -> None:
    """Invalid answers are class -1 in the toolkit; by default they are in no class."""
    guesses, golds, guessed, right = random_case(task, seed, invalid=invalid)
    metrics = evaluate_predictions(task, guesses, golds, fidelity=fidelity)
    valid = sorted({*guessed, *right} - {-1})
    for spec in task.metrics:
        labels, average = spec.label_indices, spec.average
        if fidelity == "default" and average != "micro":
            labels = labels or valid
        in_all_classes = average == "micro" and labels is None
        if spec.name == "accuracy" or (fidelity == "default" and in_all_classes):
            expected = 100.0 * accuracy_score(right, guessed)
        else:
            expected = sklearn_f1(right, guessed, average=average, labels=labels)
        assert metrics[spec.key] == pytest.approx(expected), spec


@seeds
@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@pytest.mark.parametrize("indices", [(0, 2), (1,), (0, 1, 2, 3)])
@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_label_indices_equal_scikit_learn_s_labels(
    average: Any, indices: tuple[int, ...], seed: int, fidelity: Scoring
) -> None:
    task = replace(ACT, metrics=(MetricSpec("f1", average, label_indices=indices),))
    guesses, golds, guessed, right = random_case(task, seed, invalid=True)
    (value,) = evaluate_predictions(task, guesses, golds, fidelity=fidelity).values()
    assert value == pytest.approx(sklearn_f1(right, guessed, average=average, labels=indices))


def test_invalid_answers_do_not_change_weighted_f1() -> None:
    task = get_task("Friends", "MELD_emotion_recognition")
    guesses, golds, *_ = random_case(task, 1, invalid=True)
    assert evaluate_predictions(task, guesses, golds) == pytest.approx(
        evaluate_predictions(task, guesses, golds, fidelity="tlidb")
    )


# --- several outputs and labels --------------------------------------------------------------


@seeds
def test_multi_output_accuracy_is_over_all_traits(seed: int) -> None:
    chance = random.Random(seed)
    golds = [tuple(chance.choices("01", k=5)) for _ in range(30)]
    guesses = [tuple(chance.choices(("0", "1", "?"), k=5)) for _ in range(30)]
    flat = [list(sum(answers, ())) for answers in (golds, guesses)]
    expected = 100.0 * accuracy_score(*flat)
    assert evaluate_predictions(PERSONALITY, guesses, golds)["accuracy"] == pytest.approx(expected)


@seeds
@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@pytest.mark.parametrize("restricted", [True, False])
def test_multi_label_f1_equals_scikit_learn(seed: int, average: Any, restricted: bool) -> None:
    chance = random.Random(seed)
    indices = RELATIONS.metrics[0].label_indices if restricted else None
    spec = MetricSpec("multilabel_f1", average, label_indices=indices)
    task = replace(RELATIONS, metrics=(spec,))
    golds = [tuple(chance.sample(task.labels, chance.randrange(1, 4))) for _ in range(40)]
    guesses = [
        gold if chance.random() < 0.5 else tuple(chance.sample(task.labels, chance.randrange(4)))
        for gold in golds
    ]
    vectors = [
        [[int(label in answer) for label in task.labels] for answer in answers]
        for answers in (golds, guesses)
    ]
    (value,) = evaluate_predictions(task, guesses, golds).values()
    assert value == pytest.approx(sklearn_f1(*vectors, average=average, labels=indices))


# --- worked examples -------------------------------------------------------------------------

NONE = "Impossible answer"
PAIRS = [(("red dog",), "red dog"), (("tea",), "coffee")]
QUIRK = [((NONE,), "that was impossible"), (("it is impossible",), "it is impossible")]

# name: (task, pairs of gold answers and prediction, expected metrics by fidelity)
WORKED: dict[str, tuple[Task, list[tuple[tuple[str, ...], str]], dict[Scoring, Any]]] = {
    # Neutral does not count: one hit, no false positive, one miss.
    "a missed emotion": (
        EMOTION, [(("anger",), "anger"), (("anger",), "neutral"), *[(("neutral",), "neutral")] * 2],
        {"default": {"micro_f1": 200 / 3}},
    ),
    # This adds a false positive, because the release lists -1.
    "an invalid answer to a neutral utterance": (
        EMOTION, [(("anger",), "anger"), (("anger",), "neutral"), (("neutral",), "neutral"),
                  (("neutral",), "dunno")],
        {"default": {"micro_f1": 50.0}},
    ),
    # inform 1, question 2/3, and in the toolkit class -1 with 0.
    "macro F1 with an invalid answer": (
        ACT, [*[(("inform",), "inform")] * 2, (("question",), "question"),
              (("question",), "dunno")],
        {"default": {"micro_f1": 75.0, "macro_f1": 100 * (1 + 2 / 3) / 2},
         "tlidb": {"micro_f1": 75.0, "macro_f1": 100 * (1 + 2 / 3) / 3}},
    ),
    "relations that are not scored": (
        RELATIONS, [(("per:boss", "org:students"), "per:boss"),
                    (("unanswerable",), "per:alternate_names")],
        {"default": {"micro_multilabel_f1": 100.0}},
    ),
    # Token-F1: 1; precision 1, recall 2/3: 4/5; 0; empty prediction and gold: 1.
    "exact match and token F1": (
        SPAN, [(("The red dog!",), "a RED dog"), (("my old phone",), "my phone"),
               (("tea",), "coffee"), (("...",), "")],
        {"default": {"exact_match": 50.0, "macro_token_f1": 100 * (1 + 0.8 + 0 + 1) / 4}},
    ),
    "repeated words count as often as they occur": (
        SPAN, [(("no no no way",), "no no")], {"default": {"macro_token_f1": 100 * 2 * 2 / 6}},
    ),
    # Second instance: 4/5 with "red cat" (2 of 3 words, 2 of 2), 6/7 with the longer one.
    # Pooled: common 2 + 3, predicted 2 + 3, gold 2 + 4.
    "the best of several gold answers": (
        QUESTIONS, [(("a phone", "there's a phone"), "there's a phone"),
                    (("red cat", "red cat ran off"), "the red cat ran")],
        {"default": {"exact_match": 50.0, "macro_token_f1": 100 * (1 + 6 / 7) / 2,
                     "micro_token_f1": 100 * 2 * 5 / (5 + 6)}},
    ),
    # Exact match counts the two answerable instances only. Empty prediction and gold count as one
    # token; common 1 + 0 + 1 + 0, predicted 1 + 1 + 1 + 0, gold 1 + 0 + 1 + 1.
    "unanswerable questions": (
        CAUSAL_SPAN, [((NONE,), "impossible"), ((NONE,), "the cat"), (("the dog",), "dog"),
                      (("the dog",), "")],
        {"default": {"exact_match": 50.0, "macro_token_f1": 50.0,
                     "micro_token_f1": 100 * 2 * 2 / (3 + 3)}},
    ),
    # A quirk of the toolkit: only "dog" is left as answerable.
    "impossible inside an answer": (
        CAUSAL_SPAN, [*QUIRK, (("dog",), "dog")],
        {"default": {"macro_token_f1": 200 / 3, "exact_match": 100.0},
         "tlidb": {"macro_token_f1": 100.0, "exact_match": 100.0}},
    ),
    "impossible inside an answer, and a wrong one": (
        CAUSAL_SPAN, [*QUIRK, (("dog",), "cat")],
        {"default": {"exact_match": 50.0}, "tlidb": {"exact_match": 0.0}},
    ),
    # Default: common 2, predicted 2 + 3, gold 2 + 1 (the first gold answer on a tie).
    # Toolkit: the second instance adds nothing, and of the first the last overlap counts,
    # which is "dog": common 1, predicted 2, gold 1.
    "the toolkit forgets total misses": (
        QUESTIONS, [(("red dog", "dog"), "red dog"), (("tea", "a cup of tea"),
                    "coffee without milk")],
        {"default": {"micro_token_f1": 100 * 2 * 2 / (5 + 3), "exact_match": 50.0,
                     "macro_token_f1": 50.0},
         "tlidb": {"micro_token_f1": 100 * 2 * 1 / (2 + 1), "exact_match": 50.0,
                   "macro_token_f1": 50.0}},
    ),
    "it counts misses of single answers": (
        CAUSAL_SPAN, PAIRS, {f: {"micro_token_f1": 100 * 2 * 2 / (3 + 3)} for f in FIDELITIES},
    ),
    # Its question answering lists single answers too.
    "empty answers to questions": (
        QUESTIONS, [(("",), ""), (("dont",), "")], {"tlidb": {"micro_token_f1": 100.0}},
    ),
    "a total miss of a question": (QUESTIONS, PAIRS, {"tlidb": {"micro_token_f1": 100.0}}),
    "a partial miss of a question": (
        QUESTIONS, [(("red dog",), "red dog"), (("red tea",), "red")],
        {"tlidb": {"micro_token_f1": 100 * 2 * 3 / (3 + 4)}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WORKED)
def test_metrics_of_worked_examples(case: str) -> None:
    task, pairs, expected = WORKED[case]
    golds, guesses = [gold for gold, _ in pairs], [(guess,) for _, guess in pairs]
    for fidelity, values in expected.items():
        metrics = evaluate_predictions(task, guesses, golds, fidelity=fidelity)
        assert {name: metrics[name] for name in values} == pytest.approx(values)
