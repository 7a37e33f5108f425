"""torch's global switches, as a training sets them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch

from tasktransfer.training.switches import set_switches


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Restore the switches for other tests of this process."""
    threads, mode = torch.get_num_threads(), torch.get_deterministic_debug_mode()
    cuda = torch.backends.cuda
    kernels = {
        cuda.enable_cudnn_sdp: cuda.cudnn_sdp_enabled(),
        cuda.enable_flash_sdp: cuda.flash_sdp_enabled(),
        cuda.enable_mem_efficient_sdp: cuda.mem_efficient_sdp_enabled(),
    }
    fills = torch.utils.deterministic.fill_uninitialized_memory
    yield
    torch.utils.deterministic.fill_uninitialized_memory = fills
    torch.set_num_threads(threads)
    torch.set_deterministic_debug_mode(mode)
    for enable, was in kernels.items():
        enable(was)


@pytest.mark.parametrize("gpu", [True, False], ids=["GPU", "CPU"])
def test_cudnn_never_plans_an_attention(monkeypatch: pytest.MonkeyPatch, gpu: bool) -> None:
    """It would plan for each of the four or so new shapes of an update."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    assert set_switches(1, deterministic=False).type == ("cuda" if gpu else "cpu")
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.flash_sdp_enabled()


@pytest.mark.parametrize(
    ("gpu", "deterministic", "mode"),
    [
        (True, True, "error"),
        (True, False, "default"),
        (False, True, "warn"),
        (False, False, "warn"),
    ],
)
def test_a_gpu_is_deterministic_on_request(
    monkeypatch: pytest.MonkeyPatch, gpu: bool, deterministic: bool, mode: str
) -> None:
    """Operations without a deterministic kernel raise, and fused attention is off.

    A CPU always is.
    """
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")
    torch.set_deterministic_debug_mode("default")
    set_switches(1, deterministic)
    assert torch.get_deterministic_debug_mode() == ("default", "warn", "error").index(mode)
    fused = not (gpu and deterministic)
    assert torch.backends.cuda.flash_sdp_enabled() == fused
    assert torch.backends.cuda.mem_efficient_sdp_enabled() == fused
    assert (os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8") != fused
