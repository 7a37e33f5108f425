"""The speed of matrix products on this machine, in each precision that a training may use.

``python -m tasktransfer.training.matrix_product cpu`` prints it as JSON for ``tasktransfer plan``.
On a CPU it measures one thread, the default of a training, by the thread's own clock, which stops
while other threads have the core. ``cuda`` measures the first GPU by wall time.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

SECONDS = 0.4
"""Duration of the measurement per precision, in seconds."""
SIDE = {"cpu": 768, "cuda": 8192}
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def measure_matrix_product(device: str, seconds: float = SECONDS) -> dict[str, Any]:
    """Measure the speed of products of square matrices in each precision.

    The speed is in floating-point operations per second.

    A multiplication with its addition counts as two operations.

    Raises:
        RuntimeError: the device is ``cuda``, and there is no GPU.
    """
    torch.set_num_threads(1)
    clock = time.perf_counter if device == "cuda" else time.thread_time
    rates = {name: _measure_rate(device, kind, seconds, clock) for name, kind in PRECISIONS.items()}
    name = torch.cuda.get_device_name() if device == "cuda" else f"one of {os.cpu_count()} cores"
    return {"flops": rates, "where": f"{platform.node()}, {name}"}


def _measure_rate(
    device: str, kind: torch.dtype, seconds: float, clock: Callable[[], float]
) -> float:
    side = SIDE[device]
    left = torch.ones(side, side, dtype=kind, device=device)
    _run_product(left)  # warm-up
    began, products = clock(), 0
    while (elapsed := clock() - began) < seconds or not products:
        _run_product(left)
        products += 1
    return 2.0 * side**3 * products / elapsed


def _run_product(left: torch.Tensor) -> None:
    left @ left
    if left.is_cuda:
        torch.cuda.synchronize()


if __name__ == "__main__":
    print(json.dumps(measure_matrix_product(sys.argv[1])))
