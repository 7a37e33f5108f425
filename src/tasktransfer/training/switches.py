"""Torch's global switches, set once per process: threads, attention, determinism."""

from __future__ import annotations

import os

import torch


def set_switches(threads: int, deterministic: bool) -> torch.device:
    """Set torch's global switches for a training.

    On a CPU, the same seed always gives the same results. On a GPU it does if ``deterministic``;
    otherwise results agree to rounding. Deterministic attention uses plain matrix products, because
    the backward passes of fused kernels add in any order. An operation without a deterministic
    kernel raises an error.

    Args:
        threads: number of CPU threads.

    Returns:
        The device of the training.
    """
    torch.set_num_threads(max(1, threads))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    # No operation reads uninitialised memory, so filling every new tensor only costs time.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    # cuDNN's attention spends seconds on a plan for every new shape, and updates have many shapes.
    torch.backends.cuda.enable_cudnn_sdp(False)
    if device.type == "cpu":
        # Equivalent to torch.use_deterministic_algorithms, which would also import the compiler.
        torch.set_deterministic_debug_mode("warn")
    elif deterministic:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # read when CUDA is first used
        torch.set_deterministic_debug_mode("error")
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
    return device
