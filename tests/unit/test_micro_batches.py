"""Splitting of a batch into micro-batches, and the number of tokens that a device has at once."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_splits import get_split
from torch import nn

from tasktransfer.core.specs import FAMILIES, Family
from tasktransfer.models.micro_batches import split_by_length, split_evenly, split_training_batch
from tasktransfer.training.device import SLOTS_VARIABLE
from tasktransfer.training.hardware import Hardware
from tasktransfer.training.token_budgets import MAX_GPU_TOKENS, get_token_budgets


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=40),
    st.integers(1, 4),
    st.integers(10, 300),
    st.booleans(),
)
def test_micro_batches_hold_every_example_once_within_the_budget(
    lengths: list[int], options: int, budget: int, padded: bool
) -> None:
    split = get_split(lengths, options)
    micro_batches = split_by_length(split, range(len(lengths)), budget, padded=padded)
    assert sorted(u for some in micro_batches for u in some) == list(range(len(lengths)))
    for micro_batch in micro_batches:
        each = [lengths[u] * options for u in micro_batch]
        assert (max(each) * len(each) if padded else sum(each)) <= budget or len(micro_batch) == 1


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 4), st.integers(8, 300)
)
def test_even_micro_batches_are_even_in_number_and_in_size(
    lengths: list[int], options: int, budget: int
) -> None:
    split = get_split(lengths, options)
    micro_batches = split_evenly(split, range(len(lengths)), budget)
    assert sorted(u for some in micro_batches for u in some) == list(range(len(lengths)))
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
    split = get_split([50] * 60, options=1)
    assert [len(some) for some in split_evenly(split, range(60), 1024)] == [15] * 4
    assert [len(some) for some in split_evenly(split, range(60), 8)] == [1] * 60
    assert [len(some) for some in split_evenly(split, range(60), 3000)] == [60]
    assert [len(some) for some in split_evenly(split, range(60), 2999)] == [30] * 2


def test_limit_takes_a_fixed_subset_in_order() -> None:
    split = get_split(list(range(1, 21)), options=2)
    some = split.limit_instances(5)
    assert len(some) == len(some.ids) == 5
    assert [int(i) for i in some.ids] == sorted(int(i) for i in some.ids)
    for example, name in enumerate(some.ids):
        lengths = [len(some.sequences[s]) for s in some.get_sequence_range(example)]
        assert lengths == [int(name) + 1] * 2
    assert split.limit_instances(None) is split
    assert split.limit_instances(20) is split
    assert split.limit_instances(5).ids == some.ids


def test_what_fits_at_once_is_one_micro_batch_on_request() -> None:
    """On a GPU, with any padding; a batch that does not fit is split by length as usual."""
    split = get_split([400, 10, 10, 10], options=1)
    examples = [1, 0, 2, 3]

    def cut(tokens: int, whole: bool) -> list[list[int]]:
        return split_training_batch(split, examples, tokens, packed=False, whole=whole)

    assert cut(1600, whole=True) == [[0, 1, 2, 3]]
    assert cut(1599, whole=True) == cut(1599, whole=False) == [[0], [1, 2, 3]]


# --- tokens at once -------------------------------------------------------------------------------


CUDA = torch.device("cuda")
GIB = 1 << 30


def base_model() -> Any:
    """Return a BERT-base of 110 million parameters without memory."""
    with torch.device("meta"):
        return SimpleNamespace(module=nn.Linear(110_000, 1000), layers=12, hidden_size=768)


def budgets(monkeypatch: pytest.MonkeyPatch, gibibytes: float, family: Family) -> tuple[int, int]:
    memory = SimpleNamespace(total_memory=gibibytes * GIB)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: memory)
    return get_token_budgets(base_model(), family, CUDA, "bfloat16")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_large_gpu_takes_an_update_at_once(
    monkeypatch: pytest.MonkeyPatch, family: Family
) -> None:
    """60 sequences of 512 tokens."""
    training, evaluation = budgets(monkeypatch, 80, family)
    assert (training, evaluation) == MAX_GPU_TOKENS
    assert training >= 60 * 512


def test_less_memory_is_fewer_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    of_24, of_16 = (budgets(monkeypatch, size, "encoder_decoder")[0] for size in (24, 16))
    assert of_16 < of_24 < MAX_GPU_TOKENS[0]
    assert 15_000 < of_24 < 20_000  # 0.8 of 20 GiB at 0.95 MiB
    monkeypatch.setenv(SLOTS_VARIABLE, "2")
    assert budgets(monkeypatch, 32, "encoder_decoder")[0] == of_16


def test_where_nothing_seems_to_fit_one_instance_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert budgets(monkeypatch, 2, "decoder") == (1, 4)


def test_a_part_of_a_gpu_that_is_too_small_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """140 GiB shared by 32 trainings leave hardly a token for a base model.

    Shared by 16, an update of 60 fits.
    """
    notes: dict[int, list[str]] = {16: [], 32: []}
    for slots, told in notes.items():
        monkeypatch.setenv(SLOTS_VARIABLE, str(slots))
        budgets(monkeypatch, 140, "decoder")
        Hardware("bfloat16").choose_setup(base_model(), "decoder", CUDA, told.append)
    assert notes[16] == []
    assert len(notes[32]) == 1
    assert "1/32 of the GPU's memory fits only" in notes[32][0]
    assert SLOTS_VARIABLE in notes[32][0]
