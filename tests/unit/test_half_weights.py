"""Weights cast together give the numbers of autocast."""

from __future__ import annotations

import pytest
import torch

from small_models import Loader, small_setup
from tasktransfer.core.specs import FAMILIES, Family, LowRank
from tasktransfer.datasets import get_task
from tasktransfer.models.heads import create_head
from tasktransfer.training.ahead import split_into_micro_batches
from tasktransfer.training.gradients import set_gradients
from tasktransfer.training.half_weights import HalfWeights
from tasktransfer.training.samplers import Batch

TASK = "dialogue_nli"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("tokens", "adapter"),
    [(8, None), (4096, None), (4096, LowRank(rank=4, dropout=0.0))],
    ids=["several micro-batches", "one", "an adapter"],
)
def test_the_gradient_is_autocasts(
    load: Loader, family: Family, tokens: int, adapter: LowRank | None
) -> None:
    """Bitwise, also with frozen parts and after the weights have changed."""
    model, split = load(family, "DailyDialog", TASK, adapter=adapter)
    with torch.no_grad():
        for name, parameter in model.module.named_parameters():
            if "lora_B" in name:  # it begins with zeros, and so would the other matrix's gradient
                parameter.normal_(std=0.1)
    setup = small_setup(8, 8, "bfloat16")
    update = (Batch(TASK, tuple(range(len(split)))),)
    made = split_into_micro_batches(model, {TASK: split}, update, tokens)
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


@pytest.mark.parametrize("together", [False, True], ids=["by autocast", "cast together"])
def test_logits_are_not_rounded_to_bfloat16(together: bool) -> None:
    """Between 256 and 512 bfloat16 has only even numbers: 300 and 301 become equal."""
    encoder = torch.nn.Linear(4, 4)
    head = create_head(4, get_task("DailyDialog", "emotion_recognition"), 0, "normal")
    module = torch.nn.ModuleDict({"encoder": encoder, "head": head})
    with torch.no_grad():
        head.weight.zero_()
        head.bias.zero_()
        head.bias[:2] = torch.tensor([300.0, 301.0])

    def logits() -> torch.Tensor:
        return head(encoder(torch.ones(3, 4)))  # type: ignore[no-any-return]

    half = HalfWeights(module)
    half.cast_weights()
    with torch.autocast("cpu", torch.bfloat16):
        assert encoder(torch.ones(3, 4)).dtype == torch.bfloat16
        made = half.compute_with_halves(logits) if together else logits()
    assert made.dtype == torch.float32
    assert made.argmax(-1).tolist() == [1] * 3
    assert made[0, :2].tolist() == [300.0, 301.0]
