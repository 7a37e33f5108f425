"""Permuted labels: what stays, and what is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tasktransfer.data.cache import prepare, read_instances
from tasktransfer.data.recipes import Ingredients, shuffled_labels
from tasktransfer.data.shuffle import shuffled
from tasktransfer.datasets import DATASETS
from tasktransfer.datasets.tiny_world import generate
from tasktransfer.tasks.card import Instance
from tasktransfer.tasks.checks import instance_problem


@pytest.fixture(scope="module", params=["DailyDialog", "Friends"])
def cache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    generate(folder / "world")
    prepare(request.param, folder / "world", True, folder / request.param)
    return folder / request.param


def derive(cache: Path, seed: int) -> dict[tuple[str, str], list[Instance]]:
    return dict(shuffled_labels(Ingredients((cache,), (), (), (), {"seed": seed})))


def test_every_task_keeps_its_texts_and_loses_its_labels(cache: Path) -> None:
    derived = derive(cache, 0)
    cards = DATASETS[cache.name].tasks
    assert {task for task, _ in derived} == set(cards)
    for (task, split), instances in derived.items():
        before = read_instances(cache, task, split)
        assert [(i.id, i.context, i.query, i.options, i.focus) for i in instances] == [
            (i.id, i.context, i.query, i.options, i.focus) for i in before
        ]
        assert not [p for i in instances if (p := instance_problem(cards[task], i))]
        if split == "test":
            assert instances == before
            continue
        changed = sum(a.target != b.target for a, b in zip(instances, before, strict=True))
        assert changed > len(before) / 10, task
        if cards[task].kind != "span":
            assert Counter(i.target for i in instances) == Counter(i.target for i in before)


def test_spans_keep_how_many_cannot_be_answered_and_how_long_they_are(cache: Path) -> None:
    derived = derive(cache, 0)
    for name, card in DATASETS[cache.name].tasks.items():
        if card.kind != "span":
            continue
        before = read_instances(cache, name, "train")
        after = derived[name, "train"]
        for measure in (_unanswerable, _words):
            assert Counter(map(measure, after)) == Counter(map(measure, before)), name


def _unanswerable(instance: Instance) -> bool:
    return instance.starts[0] == -1


def _words(instance: Instance) -> tuple[int, ...]:
    # The tiny world's answers are words of the context, so that each is as long as drawn.
    return tuple(len(text.split()) for text in instance.target)


def test_a_seed_is_one_permutation_and_another_seed_another(cache: Path) -> None:
    first, again, other = derive(cache, 0), derive(cache, 0), derive(cache, 1)
    assert first == again
    assert all(first[key] != other[key] for key in first if key[1] == "train")


def instance(place: int, label: str) -> Instance:
    return Instance(str(place), "d", "t", "text", 0, {}, (), (label,))


def test_a_permutation_does_not_change_with_the_machine_or_a_library() -> None:
    labels = "abcdefgh"
    instances = [instance(place, label) for place, label in enumerate(labels)]
    assert "".join(one.target[0] for one in shuffled(instances, 0, "t", "train")) == "dhegfabc"


def test_a_span_longer_than_its_new_context_is_all_of_it() -> None:
    long = Instance("0", "d", "t", "one two three four", 0, {}, (), ("one two three",), (0,))
    short = Instance("1", "d", "t", "five six", 0, {}, (), ("five",), (0,))
    after = [shuffled([long, short], seed) for seed in range(8)]
    swapped = next(pair for pair in after if pair[1].target == ("five six",))
    assert swapped[1].starts == (0,)
    assert len(swapped[0].target[0].split()) == 1
