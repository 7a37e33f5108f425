"""Attention over packed sequences by one kernel: torch's support, and the kernel's arguments."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_packing import CPU, rows_of
from torch import Tensor, nn
from torch.nn import functional

from tasktransfer.layers import attention, flash
from tasktransfer.layers.packing import pack_sequences

CUDA = torch.device("cuda")
LENGTHS = (9, 8, 5, 5, 2, 1, 1)


def by_sequence(
    query: Tensor, key: Tensor, value: Tensor, ends: Any, longest: Any, **rest: Any
) -> Tensor:
    """Compute the result that ``flash.attend`` must give, sequence by sequence."""
    made = []
    queries, keys = (torch.diff(each).tolist() for each in ends)
    assert longest == (max(queries), max(keys))
    for one in zip(query.split(queries), key.split(keys), value.split(keys), strict=True):
        q, k, v = (states.transpose(0, 1) for states in one)
        attended = functional.scaled_dot_product_attention(
            q, k, v, is_causal=rest["causal"], scale=rest["scaling"]
        )
        made.append(attended.transpose(0, 1))
    return torch.cat(made)


def states(count: int, device: torch.device = CPU, dtype: torch.dtype = torch.float32) -> Any:
    torch.manual_seed(0)
    return [torch.randn(1, 2, count, 8).to(device, dtype).requires_grad_() for _ in ("q", "k", "v")]


@pytest.mark.parametrize("causal", [False, True])
def test_the_ends_of_sequences_are_known(monkeypatch: pytest.MonkeyPatch, causal: bool) -> None:
    packed = pack_sequences(rows_of(*LENGTHS), CPU, causal=causal)
    qkv = states(sum(LENGTHS))
    groups, _ = attention.attend(nn.Identity(), *qkv, None, packed=packed)
    monkeypatch.setattr(flash, "is_usable", lambda query: True)
    monkeypatch.setattr(flash, "attend", by_sequence)
    one, _ = attention.attend(nn.Identity(), *qkv, None, packed=packed)
    torch.testing.assert_close(one, groups)


def test_it_is_told_of_first_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pack_sequences(rows_of(*LENGTHS), CPU, firsts_only=True)
    assert packed.first_places is not None
    query, key, value = (one[0].transpose(0, 1) for one in states(sum(LENGTHS)))
    firsts = query[packed.first_places]
    groups = attention.attend_from_first_tokens(packed, firsts, key, value, 0.3, 0.0)
    monkeypatch.setattr(flash, "is_usable", lambda query: True)
    monkeypatch.setattr(flash, "attend", by_sequence)
    one = attention.attend_from_first_tokens(packed, firsts, key, value, 0.3, 0.0)
    torch.testing.assert_close(one, groups)


def test_torchs_operation_takes_what_it_is_given() -> None:
    """The contract: if this fails with a new torch, check ``flash.attend``."""
    schema = torch.ops.aten._flash_attention_forward.default._schema
    given = ["query", "key", "value", "cum_seq_q", "cum_seq_k", "max_q", "max_k", "dropout_p",
             "is_causal", "return_debug_mask"]  # fmt: skip
    assert [argument.name for argument in schema.arguments][: len(given)] == given
    assert "scale" in [argument.name for argument in schema.arguments]
    assert schema.returns[0].name == "output"


def test_what_the_kernels_are_not_built_for_is_left_to_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Query:
        is_cuda, dtype, device, shape = True, torch.bfloat16, CUDA, (4, 2, 64)

    monkeypatch.setattr(torch.backends.cuda, "is_flash_attention_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    query: Any = Query()
    assert flash.is_usable(query)
    for name, value in {"is_cuda": False, "dtype": torch.float32, "shape": (4, 2, 36)}.items():
        with monkeypatch.context() as patch:
            patch.setattr(query, name, value, raising=False)
            assert not flash.is_usable(query)
    with monkeypatch.context() as patch:
        patch.setenv(flash.VARIABLE, "0")
        assert not flash.is_usable(query)
    with monkeypatch.context() as patch:
        patch.setattr(torch.backends.cuda, "flash_sdp_enabled", lambda: False)
        assert not flash.is_usable(query)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert not flash.is_usable(query)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("causal", [False, True])
def test_a_gpus_kernel_gives_what_groups_give(
    monkeypatch: pytest.MonkeyPatch, causal: bool
) -> None:
    packed = pack_sequences(rows_of(*LENGTHS), CUDA, causal=causal)
    made = []
    for switch in ("1", "0"):
        monkeypatch.setenv(flash.VARIABLE, switch)
        qkv = states(sum(LENGTHS), CUDA, torch.bfloat16)
        assert flash.is_usable(qkv[0]) == (switch == "1")
        attended, _ = attention.attend(nn.Identity(), *qkv, None, packed=packed)
        made.append([attended, *torch.autograd.grad(attended.float().square().sum(), qkv)])
    for one, groups in zip(*made, strict=True):
        torch.testing.assert_close(one, groups, rtol=0.03, atol=0.03)
