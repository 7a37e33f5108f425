"""torch's own switches, set once a process: threads, attention, and what is deterministic."""

from __future__ import annotations

import os

import torch


def set_switches(threads: int, deterministic: bool) -> torch.device:
    """Set them for a training on so many threads.

    On a CPU equal seeds give equal numbers always. On a GPU they do where ``deterministic``: the
    attention is plain products, since the fused kernels' backward passes add in any order, and an
    operation that has no deterministic kernel raises. Else they agree to rounding there.

    Returns:
        The device that it runs on.
    """
    torch.set_num_threads(max(1, threads))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    # No operation reads what it did not write; filling every new tensor only costs time.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    # cuDNN's attention builds a plan for every new shape, and every update brings some: seconds.
    torch.backends.cuda.enable_cudnn_sdp(False)
    if device.type == "cpu":
        # The same as torch.use_deterministic_algorithms, which would import the compiler as well.
        torch.set_deterministic_debug_mode("warn")
    elif deterministic:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # read when CUDA is first used
        torch.set_deterministic_debug_mode("error")
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
    return device
