"""torch's own switches, set once a process: threads, attention, and what is deterministic."""

from __future__ import annotations

import os

import torch


def set_switches(threads: int) -> torch.device:
    """Set them for a training on so many threads.

    Returns:
        The device that it runs on.
    """
    torch.set_num_threads(max(1, threads))
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # The same as torch.use_deterministic_algorithms, which would import the compiler as well.
    torch.set_deterministic_debug_mode("warn")
    # No operation reads what it did not write; filling every new tensor only costs time.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    # cuDNN's attention builds a plan for every new shape, and every update brings some: seconds.
    torch.backends.cuda.enable_cudnn_sdp(False)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
