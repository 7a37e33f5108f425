"""Reference rows: simple answers, and what they score."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

from tasktransfer.data.cache import prepare
from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.datasets.tiny_world import generate
from tasktransfer.designs.transfer import reference
from tasktransfer.designs.transfer.reference import most_frequent, reference_rows, scores
from tasktransfer.tasks.card import Instance, Task

TOPIC = get_task("DailyDialog", "topic_classification")
WORK, HEALTH = TOPIC.labels[0], TOPIC.labels[1]


def topics(*labels: str) -> list[Instance]:
    words = {WORK: "office meeting boss", HEALTH: "doctor fever pills"}
    return [
        Instance(str(i), f"d{i}", TOPIC.name, f"a: {words[label]}", 0, {}, (), (label,))
        for i, label in enumerate(labels)
    ]


def test_the_most_frequent_answer_scores_its_share() -> None:
    train, test = topics(WORK, WORK, HEALTH), topics(WORK, HEALTH, HEALTH, HEALTH)
    assert most_frequent(TOPIC, train) == (WORK,)
    assert scores(TOPIC, train, test)["most_frequent"] == pytest.approx(
        reference._score(TOPIC, [(WORK,)] * 4, test)
    )


def test_answers_by_frequency_score_the_mean_of_their_draws() -> None:
    one = topics(*[WORK] * 8)
    assert scores(TOPIC, one, one)["by_frequency"] == 100
    half = topics(*[WORK, HEALTH] * 100)
    micro = scores(TOPIC, half, half)["by_frequency"]
    assert 35 < micro < 65
    assert micro == scores(TOPIC, half, half)["by_frequency"]


def test_words_are_learnt() -> None:
    train = topics(*[WORK, HEALTH] * 10)
    assert scores(TOPIC, train, topics(HEALTH, WORK, HEALTH))["tfidf"] == 100


def test_several_outputs_are_each_answered() -> None:
    card = get_task("Friends", "personality_detection")
    yes, no = card.labels[0], card.labels[1]
    targets = [(yes, no, yes, no, no)] * 2 + [(no, no, yes, yes, no)]
    train = [
        Instance(str(i), "d", card.name, "a: b", 0, dict.fromkeys(_fields(card), "x"), (), target)
        for i, target in enumerate(targets)
    ]
    assert most_frequent(card, train) == (yes, no, yes, no, no)


def _fields(card: Task) -> list[str]:
    return [part.split("}")[0] for part in card.query.split("{")[1:]]


@pytest.fixture(scope="module")
def caches(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("world")
    generate(folder / "world")
    for dataset in DATASETS:
        prepare(dataset, folder / "world", True, folder / dataset)
    return [folder / dataset for dataset in DATASETS]


@pytest.fixture(scope="module")
def rows(caches: list[Path]) -> dict[tuple[str, str], float]:
    return {(row["task"], row["reference"]): row["score"] for row in reference_rows(caches)}


def test_every_task_of_the_tiny_world_has_its_rows(rows: dict[tuple[str, str], float]) -> None:
    cards = [card for dataset in DATASETS.values() for card in dataset.tasks.values()]
    for card in cards:
        wanted = {"most_frequent", "by_frequency", *(["tfidf"] if card.kind != "span" else [])}
        assert {name for task, name in rows if task == card.name} == wanted
    assert all(0 <= score <= 100 for score in rows.values())


@pytest.mark.parametrize(
    "task",
    [
        "dialogue_act_classification",  # an act word decides
        "MELD_emotion_recognition",  # a mood word
        "personality_detection",  # a trait word
        "relation_extraction",  # a kinship word
        "adversarial_response_selection",  # a courtesy word in the option
    ],
)
def test_what_a_word_decides_is_learnt(rows: dict[tuple[str, str], float], task: str) -> None:
    assert rows[task, "tfidf"] > rows[task, "most_frequent"] + 5


def test_without_scikit_learn_the_others_are_there(
    caches: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def refusing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(reference, "find_spec", lambda name: None)
    monkeypatch.setattr(builtins, "__import__", refusing)
    names = {row["reference"] for row in reference_rows(caches[1:])}
    assert names == {"most_frequent", "by_frequency"}
