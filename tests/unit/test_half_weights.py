"""Weights cast together: the numbers of autocast."""

from __future__ import annotations

import pytest
import torch

from small_models import Loader
from tasktransfer.core.specs import FAMILIES, Family
from tasktransfer.training.ahead import micro_batches
from tasktransfer.training.gradients import set_gradients
from tasktransfer.training.half_weights import HalfWeights
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.samplers import Batch
from tasktransfer.training.setup import Setup

TASK = "dialogue_nli"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("tokens", [8, 4096], ids=["several micro-batches", "one"])
def test_the_gradient_is_autocasts(load: Loader, family: Family, tokens: int) -> None:
    """Bit for bit, also with frozen parts and after the weights have changed."""
    model, split = load(family, "DailyDialog", TASK)
    setup = Setup(
        torch.device("cpu"), TokenBudget(8, "training"), TokenBudget(8, "test"), "bfloat16"
    )
    update = (Batch(TASK, tuple(range(len(split)))),)
    made = micro_batches(model, {TASK: split}, update, tokens)
    parameters = list(model.module.parameters())
    parameters[5].requires_grad_(False)
    moving = [parameter for parameter in parameters if parameter.requires_grad]
    halves = HalfWeights(model.module)
    for _ in range(2):
        gradients = []
        for way in (None, halves):
            losses = set_gradients(model, moving, {TASK: split}, update, made, setup, way)
            gradients.append([losses[0], *[p.grad for p in moving]])
        for one, other in zip(*gradients, strict=True):
            assert (one is None) == (other is None)
            assert one is None or torch.equal(one, other)
        with torch.no_grad():
            for parameter in moving:
                parameter.mul_(1.1)
    assert all(p.dtype == torch.float32 for p in model.module.parameters())
