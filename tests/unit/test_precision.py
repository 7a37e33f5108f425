"""Which number format a training multiplies in."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tasktransfer.training import precision
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.precision import WIDE, Precision, chosen
from tasktransfer.training.setup import Setup

CPUINFO = Path("/proc/cpuinfo")
CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("has_amx", "hidden_size", "expected"),
    [
        (True, WIDE, "bfloat16"),
        (True, WIDE - 1, "float32"),
        (False, 4 * WIDE, "float32"),
    ],
)
def test_auto_on_a_cpu_depends_on_its_units_and_on_the_model(
    monkeypatch: pytest.MonkeyPatch, has_amx: bool, hidden_size: int, expected: str
) -> None:
    monkeypatch.setattr(precision, "has_amx", lambda: has_amx)
    assert chosen("auto", CPU, hidden_size) == expected


@pytest.mark.parametrize(("supported", "expected"), [(True, "bfloat16"), (False, "float32")])
def test_auto_on_a_gpu_depends_on_the_gpu(
    monkeypatch: pytest.MonkeyPatch, supported: bool, expected: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: supported)
    assert chosen("auto", CUDA, 64) == expected


@pytest.mark.parametrize("wanted", ["float32", "bfloat16"])
def test_what_is_asked_for_is_done(wanted: Precision) -> None:
    for device in (CPU, CUDA):
        for hidden_size in (16, 1024):
            assert chosen(wanted, device, hidden_size) == wanted


@pytest.mark.skipif(not CPUINFO.is_file(), reason="no /proc/cpuinfo to compare with: not Linux")
def test_this_machine_s_units_are_those_that_its_kernel_names() -> None:
    assert precision.has_amx() == ("amx_bf16" in CPUINFO.read_text().split())


@pytest.mark.parametrize(
    ("wanted", "made"), [("float32", torch.float32), ("bfloat16", torch.bfloat16)]
)
def test_products_are_made_in_it(wanted: Precision, made: torch.dtype) -> None:
    setup = Setup(CPU, TokenBudget(8, "training"), TokenBudget(8, "evaluation"), wanted)
    with setup.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == made


@pytest.mark.parametrize("wanted", ["float32", "bfloat16"])
def test_weights_are_converted_once_an_update(wanted: Precision) -> None:
    """And anew in the next one, when they are others."""
    setup = Setup(CPU, TokenBudget(8, "training"), TokenBudget(8, "evaluation"), wanted)
    weight = torch.ones(2, 2, requires_grad=True)
    one = torch.ones(1, 2)
    for expected in (2.0, 4.0):
        with setup.one_update(), torch.profiler.profile() as profile:
            for _ in range(3):
                with setup.autocast():
                    made = one @ weight
                (gradient,) = torch.autograd.grad(made.sum(), [weight])
                assert gradient.dtype == torch.float32
                assert gradient.tolist() == [[1.0, 1.0]] * 2
        assert made.tolist() == [[expected, expected]]
        conversions = {event.key: event.count for event in profile.key_averages()}
        # Of the weight once, and three times each of what it is multiplied by and of gradients.
        seen = conversions.get("aten::_to_copy", 0)
        assert seen == (7 if wanted == "bfloat16" else 0)
        weight.data.mul_(2)
