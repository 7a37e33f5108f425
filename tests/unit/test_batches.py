"""Order, mixing and micro-batches: pure, no model."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tasktransfer.training.batches import epoch_batches, task_weights

from tasktransfer.models.encoded import EncodedSplit, Ragged
from tasktransfer.models.micro_batches import even_micro_batches, micro_batches_by_length


def split_of(lengths: list[int], options: int = 1) -> EncodedSplit:
    """A split whose example u has ``options`` sequences of ``lengths[u]`` tokens."""
    counts = np.full(len(lengths), options, np.int32)
    each = np.repeat(np.array(lengths, np.int32), options)
    return EncodedSplit(
        task="t",
        instance=np.arange(len(lengths), dtype=np.int32),
        output=np.zeros(len(lengths), np.int32),
        first_sequence=np.concatenate([[0], counts.cumsum()]).astype(np.int32),
        sequences=Ragged(
            np.ones(int(each.sum()), np.int32),
            np.concatenate([[0], each.cumsum()]).astype(np.int32),
        ),
        second_starts=each,
        labels=Ragged(
            np.zeros(len(lengths), np.int32), np.arange(len(lengths) + 1, dtype=np.int32)
        ),
        offsets=Ragged(np.zeros(0, np.int32), np.zeros(len(lengths) + 1, np.int32)),
        ids=[str(i) for i in range(len(lengths))],
        targets=[("x",)] * len(lengths),
        contexts=[""] * len(lengths),
    )


def test_every_example_of_every_task_comes_once_in_batches_of_one_task() -> None:
    batches = epoch_batches({"a": 130, "b": 7}, 60, seed=3, epoch=1)
    assert Counter(b.task for b in batches) == {"a": 3, "b": 1}
    for task, size in (("a", 130), ("b", 7)):
        examples = [u for b in batches if b.task == task for u in b.examples]
        assert sorted(examples) == list(range(size))
    assert sorted(len(b.examples) for b in batches) == [7, 10, 60, 60]


def test_order_depends_on_seed_and_epoch_and_on_nothing_else() -> None:
    sizes = {"a": 130, "b": 70}
    again = epoch_batches({"b": 70, "a": 130}, 60, seed=3, epoch=1)
    assert epoch_batches(sizes, 60, seed=3, epoch=1) == again
    assert epoch_batches(sizes, 60, seed=3, epoch=2) != again
    assert epoch_batches(sizes, 60, seed=4, epoch=1) != again


def test_tasks_are_drawn_in_proportion_to_their_remaining_batches() -> None:
    firsts = Counter(
        epoch_batches({"a": 90, "b": 10}, 10, seed=seed, epoch=1)[0].task for seed in range(400)
    )
    assert firsts["a"] / 400 == pytest.approx(0.9, abs=0.05)


def test_task_weights_follow_the_option() -> None:
    sizes = {"a": 130, "b": 60}
    assert task_weights(sizes, 60, "none") == {"a": 1.0, "b": 1.0}
    assert task_weights(sizes, 60, "inverse_sqrt") == {"a": 1 / math.sqrt(3), "b": 1.0}
    assert task_weights({"a": 130}, 60, "inverse_sqrt") == {"a": 1.0}


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=40),
    st.integers(1, 4),
    st.integers(10, 300),
    st.booleans(),
)
def test_micro_batches_hold_every_example_once_within_the_budget(
    lengths: list[int], options: int, budget: int, padded: bool
) -> None:
    split = split_of(lengths, options)
    micro_batches = micro_batches_by_length(split, range(len(lengths)), budget, padded=padded)
    assert sorted(u for p in micro_batches for u in p) == list(range(len(lengths)))
    for micro_batch in micro_batches:
        each = [lengths[u] * options for u in micro_batch]
        assert (max(each) * len(each) if padded else sum(each)) <= budget or len(micro_batch) == 1


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=40),
    st.integers(1, 4),
    st.integers(8, 300),
)
def test_even_micro_batches_are_even_in_number_and_in_size(
    lengths: list[int], options: int, budget: int
) -> None:
    split = split_of(lengths, options)
    micro_batches = even_micro_batches(split, range(len(lengths)), budget)
    assert sorted(u for p in micro_batches for u in p) == list(range(len(lengths)))
    sizes = [sum(lengths[u] * options for u in micro_batch) for micro_batch in micro_batches]
    largest_example = max(lengths) * options
    assert all(size <= budget + largest_example for size in sizes)
    alone = len(micro_batches) == len(lengths)
    assert alone or max(sizes) - min(sizes) <= 2 * largest_example
    whole = sum(sizes)
    asked = 1 if whole <= budget else 2 * math.ceil(whole / (2 * budget))
    assert len(micro_batches) <= min(asked, len(lengths))
    in_order = [lengths[u] for micro_batch in micro_batches for u in micro_batch]
    assert in_order == sorted(lengths, reverse=True)


def test_batches_of_like_lengths_fill_every_micro_batch() -> None:
    split = split_of([50] * 60, options=1)
    assert [len(p) for p in even_micro_batches(split, range(60), 1024)] == [15] * 4
    assert [len(p) for p in even_micro_batches(split, range(60), 8)] == [1] * 60
    assert [len(p) for p in even_micro_batches(split, range(60), 3000)] == [60]
    assert [len(p) for p in even_micro_batches(split, range(60), 2999)] == [30] * 2


def test_limit_takes_a_fixed_subset_in_order() -> None:
    split = split_of(list(range(1, 21)), options=2)
    some = split.limited(5)
    assert len(some) == len(some.ids) == 5
    assert [int(i) for i in some.ids] == sorted(int(i) for i in some.ids)
    for example, name in enumerate(some.ids):
        lengths = [len(some.sequences[s]) for s in some.sequence_range(example)]
        assert lengths == [int(name) + 1] * 2
    assert split.limited(None) is split
    assert split.limited(20) is split
    assert split.limited(5).ids == some.ids
