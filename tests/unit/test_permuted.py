"""Instances with permuted answers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tasktransfer.data.cache import cache_dataset, read_instances, read_manifest
from tasktransfer.data.permuted import derive_permuted_instances, permute_answers
from tasktransfer.data.recipes import Ingredients
from tasktransfer.datasets import DATASETS
from tasktransfer.datasets.tiny_world import generate_releases
from tasktransfer.tasks.card import Instance
from tasktransfer.tasks.checks import find_instance_problem


@pytest.fixture(scope="module")
def caches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("permuted")
    generate_releases(folder / "world", seed=0, dialogues=120)
    for dataset in ("DailyDialog", "Friends"):
        cache_dataset(dataset, folder / "world", True, folder / dataset)
    return {dataset: folder / dataset for dataset in ("DailyDialog", "Friends")}


def derived(cache: Path, seed: int) -> dict[tuple[str, str], list[Instance]]:
    return derive_permuted_instances(Ingredients((cache,), (), (), (), {"seed": seed}))


@pytest.mark.parametrize("dataset", ["DailyDialog", "Friends"])
def test_texts_stay_answers_move_and_all_fit_their_card(
    caches: dict[str, Path], dataset: str
) -> None:
    made = derived(caches[dataset], 0)
    assert {task for task, _ in made} == set(read_manifest(caches[dataset]).tasks)
    for (task, split), instances in made.items():
        card = DATASETS[dataset].tasks[task]
        before = read_instances(caches[dataset], task, split)
        assert [(one.id, one.context, one.query) for one in instances] == [
            (one.id, one.context, one.query) for one in before
        ]
        assert not [problem for one in instances if (problem := find_instance_problem(card, one))]
        moved = sum(a.target != b.target for a, b in zip(instances, before, strict=True))
        assert (moved == 0) == (split == "test")
        counts = [
            Counter((-1 in one.starts) if card.kind == "span" else one.target for one in all_)
            for all_ in (instances, before)
        ]
        assert counts[0] == counts[1], "as many answers, or unanswerable questions"


def test_a_seed_is_one_permutation(caches: dict[str, Path]) -> None:
    cache = caches["DailyDialog"]
    assert derived(cache, 0) == derived(cache, 0)
    assert derived(cache, 0) != derived(cache, 1)


def test_an_answer_out_of_a_list_is_another_one_of_the_list(caches: dict[str, Path]) -> None:
    """Words of the scene that are not entities would teach impossible answers."""
    settings = {"seed": 0, "listed": True}
    made = derive_permuted_instances(Ingredients((caches["Friends"],), (), (), (), settings))
    before = derived(caches["Friends"], 0)
    card = DATASETS["Friends"].tasks["reading_comprehension"]
    moved = 0
    for split in ("train", "dev"):
        real = read_instances(caches["Friends"], "reading_comprehension", split)
        for one, truth in zip(made["reading_comprehension", split], real, strict=True):
            (answer,) = one.target
            assert answer in one.options
            assert find_instance_problem(card, one) is None
            moved += answer != truth.target[0]
            if one.starts[0] >= 0:
                said = one.context[one.starts[0] :][: len(answer)]
                assert said.lower() == answer.lower()
    assert moved > 0
    # The other tasks have what they had.
    for place, instances in made.items():
        assert place[0] == "reading_comprehension" or instances == before[place]


def span(context: str, answer: str) -> Instance:
    start = context.find(answer)
    return Instance(context, "d", "t", context, 0, {}, (), (answer,), (start,))


def test_a_span_lies_as_far_from_the_beginning_and_has_as_many_words() -> None:
    first = span("one two three four five", "four five")
    second = span("a b c d e f g h i", "a")
    for draw in map(str, range(20)):
        moved = permute_answers([first, second], draw)
        if moved[0] != first:
            break
    assert [(one.target, one.starts) for one in moved] == [(("one",), (0,)), (("h i",), (14,))]
