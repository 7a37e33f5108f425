"""Micro-batches that are prepared in advance."""

from __future__ import annotations

import pytest
import torch

from small_models import Loader
from tasktransfer.core.specs import FAMILIES, Family
from tasktransfer.models.staging import copy_to_device
from tasktransfer.training.ahead import UpdatePreparer
from tasktransfer.training.samplers import Batch

TASK = "dialogue_nli"
CUDA = torch.device("cuda")


@pytest.mark.parametrize("family", FAMILIES)
def test_what_was_prepared_before_gives_the_same_loss(load: Loader, family: Family) -> None:
    """A thread prepares the next update, and repeats it if the number of tokens is lowered."""
    model, split = load(family, "DailyDialog", TASK)
    updates = [(Batch(TASK, (0, 1)),), (Batch(TASK, (1, 0, 1)),)]
    with UpdatePreparer(model, {TASK: split}, updates, CUDA) as ahead:
        for number, tokens in ((0, 4096), (1, 4096), (1, 8)):
            (made,) = ahead.get_update(number, tokens)
            examples = [example for one in made for example in one.examples]
            assert sorted(examples) == sorted(updates[number][0].examples)
            assert len(made) == (len(examples) if tokens == 8 else 1)
            for one in made:
                prepared = model.compute_loss(split, one.examples, one.inputs)
                assert torch.equal(prepared, model.compute_loss(split, one.examples))


def test_an_error_of_the_thread_is_raised_where_its_update_is_requested(load: Loader) -> None:
    model, split = load("encoder", "DailyDialog", TASK)
    updates = [(Batch(TASK, (0,)),), (Batch(TASK, (10_000,)),)]
    with UpdatePreparer(model, {TASK: split}, updates, CUDA) as ahead:
        ahead.get_update(0, 100)
        with pytest.raises(IndexError):
            ahead.get_update(1, 100)


def test_a_cpu_prepares_nothing_ahead(load: Loader) -> None:
    model, split = load("encoder", "DailyDialog", TASK)
    with UpdatePreparer(model, {TASK: split}, [(Batch(TASK, (0,)),)], torch.device("cpu")) as ahead:
        assert ahead.get_update(0, 100)[0][0].inputs is None


def test_arrays_arrive_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any type and shape, from one buffer; the meta device represents one other than the CPU."""
    made = {
        "ids": torch.arange(5)[None].numpy(),
        "mask": torch.tensor([True, False, True]).numpy(),
        "rates": torch.rand(2, 3).numpy(),
        "none": torch.zeros(0, dtype=torch.int32).numpy(),
    }
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self)
    monkeypatch.setattr(torch.Tensor, "to", lambda self, *_, **__: self)
    there = copy_to_device(made, CUDA)
    for name, array in made.items():
        assert torch.equal(there[name], torch.from_numpy(array))
