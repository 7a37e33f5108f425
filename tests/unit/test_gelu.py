"""Tanh-GELU as one operation instead of its steps."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import T5ForConditionalGeneration
from transformers.activations import ACT2FN

from architectures import build_config
from small_models import Loader
from tasktransfer.layers.gelu import SPELLINGS, use_fused_gelu


def stepwise(module: nn.Module) -> list[str]:
    kinds = tuple(type(ACT2FN[name]) for name in SPELLINGS)
    return [name for name, inner in module.named_modules() if isinstance(inner, kinds)]


@pytest.mark.parametrize("name", SPELLINGS)
def test_values_and_gradients_are_those_of_the_steps(name: str) -> None:
    values = torch.linspace(-10, 10, 20001).requires_grad_()
    module = nn.Sequential(ACT2FN[name])
    (by_steps,) = torch.autograd.grad(module(values).sum(), values)
    made = module(values)
    use_fused_gelu(module)
    assert not stepwise(module)
    (at_once,) = torch.autograd.grad(module(values).sum(), values)
    assert (module(values) - made).abs().max() < 1e-6
    assert (at_once - by_steps).abs().max() < 1e-5


def test_the_gated_t5_has_it_too() -> None:
    model = T5ForConditionalGeneration(build_config("t5", feed_forward_proj="gated-gelu"))
    assert stepwise(model)
    use_fused_gelu(model)
    assert not stepwise(model)


def test_other_activations_stay() -> None:
    module = nn.Sequential(ACT2FN["gelu"], ACT2FN["relu"], ACT2FN["quick_gelu"])
    before = [*module]
    use_fused_gelu(module)
    assert all(one is other for one, other in zip(module, before, strict=True))


def test_decoders_are_loaded_with_it_and_the_plain_path_is_not(load: Loader) -> None:
    model, _ = load("decoder", "DailyDialog", "emotion_recognition")
    plain, _ = load("decoder", "DailyDialog", "emotion_recognition", plain=True)
    assert not stepwise(model.module)
    assert stepwise(plain.module)
