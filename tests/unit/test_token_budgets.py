"""Number of tokens in a model at once, for the available devices."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from tasktransfer.core.specs import FAMILIES, Family
from tasktransfer.training.device import SLOTS_VARIABLE
from tasktransfer.training.hardware import Hardware
from tasktransfer.training.token_budgets import MAX_GPU_TOKENS, get_token_budgets

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
