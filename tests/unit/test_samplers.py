"""Examples of each update and updates of each round, without a model."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
from small_splits import get_split

from tasktransfer.core.specs import Sampler, Training
from tasktransfer.errors import DataError
from tasktransfer.training.samplers import (
    SAMPLERS,
    Schedule,
    Update,
    build_task_batches,
    check_same_instances,
    compute_task_weights,
    mix_tasks,
    pair_instances,
    sample_tasks_uniformly,
)

SIXTY = Training(batch_size=60, epochs=3)
TEN = Training(batch_size=10, epochs=3)


def examples(updates: list[Update], task: str) -> list[int]:
    return [e for update in updates for b in update if b.task == task for e in b.examples]


def test_every_example_of_every_task_comes_once_in_batches_of_one_task() -> None:
    updates = build_task_batches({"a": 130, "b": 7}, SIXTY, seed=3, epoch=1)
    assert all(len(update) == 1 for update in updates)
    assert Counter(b.task for (b,) in updates) == {"a": 3, "b": 1}
    for task, size in (("a", 130), ("b", 7)):
        assert sorted(examples(updates, task)) == list(range(size))
    assert sorted(len(b.examples) for (b,) in updates) == [7, 10, 60, 60]
    assert {b.task: b.weight for (b,) in updates} == {"a": 1 / math.sqrt(3), "b": 1.0}


def test_the_order_is_the_one_that_results_so_far_were_trained_in() -> None:
    updates = build_task_batches({"b": 5, "a": 7}, replace(TEN, batch_size=3), seed=1, epoch=2)
    assert [(b.task, b.examples) for (b,) in updates] == [
        ("a", (0, 6, 5)),
        ("b", (3, 1, 4)),
        ("a", (1, 4, 3)),
        ("a", (2,)),
        ("b", (0, 2)),
    ]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_order_depends_on_seed_and_epoch_and_on_nothing_else(sampler: Sampler) -> None:
    updates = SAMPLERS[sampler]({"a": 130, "b": 130}, SIXTY, 3, 1)
    assert SAMPLERS[sampler]({"b": 130, "a": 130}, SIXTY, 3, 1) == updates
    assert SAMPLERS[sampler]({"a": 130, "b": 130}, SIXTY, 3, 2) != updates
    assert SAMPLERS[sampler]({"a": 130, "b": 130}, SIXTY, 4, 1) != updates


def test_tasks_are_drawn_in_proportion_to_their_remaining_batches() -> None:
    firsts = Counter(
        build_task_batches({"a": 90, "b": 10}, TEN, seed=seed, epoch=1)[0][0].task
        for seed in range(400)
    )
    assert firsts["a"] / 400 == pytest.approx(0.9, abs=0.05)


def test_task_weights_follow_the_option() -> None:
    sizes = {"a": 130, "b": 60}
    assert compute_task_weights(sizes, 60, "none") == {"a": 1.0, "b": 1.0}
    assert compute_task_weights(sizes, 60, "inverse_sqrt") == {"a": 1 / math.sqrt(3), "b": 1.0}
    assert compute_task_weights({"a": 130}, 60, "inverse_sqrt") == {"a": 1.0}


def test_uniform_draws_tasks_alike_whatever_their_sizes() -> None:
    updates = sample_tasks_uniformly({"a": 9000, "b": 1000}, TEN, seed=0, epoch=1)
    assert len(updates) == 1000
    assert {b.weight for (b,) in updates} == {1.0}
    drawn = Counter(b.task for (b,) in updates)
    assert drawn["a"] / 1000 == pytest.approx(0.5, abs=0.05)


def test_mixed_draws_tasks_alike_for_each_example() -> None:
    sizes = {"large": 3000, "middle": 300, "small": 32}
    updates = mix_tasks(sizes, replace(TEN, batch_size=32), seed=0, epoch=1)
    for update in updates:
        assert sum(len(batch.examples) for batch in update) == 32
        assert sum(batch.weight for batch in update) == pytest.approx(1)
    total = 32 * len(updates)
    error = (total * (1 / 3) * (2 / 3)) ** 0.5
    assert all(abs(len(examples(updates, task)) - total / 3) < 4 * error for task in sizes)


@pytest.mark.parametrize("sampler", ["uniform", "mixed"])
def test_no_example_is_repeated_before_all_of_its_task_were_drawn(sampler: Sampler) -> None:
    drawn = examples(SAMPLERS[sampler]({"a": 900, "b": 25}, TEN, 0, 1), "b")
    passes = [drawn[i : i + 25] for i in range(0, len(drawn), 25)]
    assert len(passes) > 10
    assert all(len(set(one)) == len(one) for one in passes)
    assert all(sorted(one) == list(range(25)) for one in passes[:-1])
    assert len(set(map(tuple, passes))) == len(passes)  # shuffled again


def test_together_takes_the_same_instances_of_every_task() -> None:
    updates = pair_instances({"b": 25, "a": 25}, TEN, seed=0, epoch=1)
    assert [len(update[0].examples) for update in updates] == [10, 10, 5]
    for update in updates:
        assert [(b.task, b.weight) for b in update] == [("a", 0.5), ("b", 0.5)]
        assert update[0].examples == update[1].examples
    assert sorted(examples(updates, "a")) == list(range(25))


def test_together_refuses_tasks_that_do_not_share_their_instances() -> None:
    split = get_split([3, 3, 3])
    check_same_instances({"a": split, "b": split})
    with pytest.raises(DataError, match=r"of a has 3 examples, .* of b has 2.*another sampler"):
        check_same_instances({"a": split, "b": get_split([3, 3])})
    renamed = replace(split, ids=["0", "2", "1"])
    with pytest.raises(DataError, match="index 1 is '1' in the task a, but '2' in the task b"):
        check_same_instances({"a": split, "b": renamed})


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("every", [None, 1, 4, 7, 100])
def test_rounds_are_the_epochs_updates_cut_again(sampler: Sampler, every: int | None) -> None:
    sizes = {"a": 25, "b": 25}
    schedule = Schedule(sampler, sizes, TEN, 5, every)
    epochs = [SAMPLERS[sampler](sizes, TEN, 5, epoch) for epoch in (1, 2, 3)]
    rounds = [list(schedule.iterate_round(number)) for number in range(1, schedule.rounds + 1)]
    assert [u for one in rounds for u in one] == [u for epoch in epochs for u in epoch]
    assert {len(one) for one in rounds[:-1]} <= {every or len(epochs[0])}
    assert 0 < len(rounds[-1]) <= (every or len(epochs[0]))
    again = Schedule(sampler, sizes, TEN, 5, every)  # of a process that goes on after a kill
    assert list(again.iterate_round(schedule.rounds)) == rounds[-1]
