"""torch's own switches, as a training sets them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tasktransfer.training.switches import set_switches


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Other tests of this process find the switches as they were."""
    threads, mode = torch.get_num_threads(), torch.get_deterministic_debug_mode()
    cuda = torch.backends.cuda
    kernels = {
        cuda.enable_cudnn_sdp: cuda.cudnn_sdp_enabled(),
        cuda.enable_flash_sdp: cuda.flash_sdp_enabled(),
        cuda.enable_mem_efficient_sdp: cuda.mem_efficient_sdp_enabled(),
    }
    yield
    torch.set_num_threads(threads)
    torch.set_deterministic_debug_mode(mode)
    for enable, was in kernels.items():
        enable(was)


def test_cudnn_never_plans_an_attention() -> None:
    """It would for each of the four or so new shapes of an update."""
    set_switches(1)
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.flash_sdp_enabled()
