"""Measure the speed of matrix products on this machine, with which training speeds are compared.

``python -m benchmarks.training_speed.matrix_rate THREADS`` prints operations per second for each
precision, two per multiplication and addition. (``training.matrix_product`` measures a single
thread, for the forecast.)
"""

from __future__ import annotations

import json
import sys
import time

import torch

SECONDS, SLICES = 1.0, 10
SIDE = {"cpu": 1024, "cuda": 8192}


def measure_matrix_rate(threads: int, kind: torch.dtype, seconds: float = SECONDS) -> float:
    """Return operations per second of square matrix products, in the best of several time slices.

    The best slice is used because the limit is the speed without other load.
    """
    torch.set_num_threads(threads)
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    side = SIDE[device]
    left = torch.randn(side, side, device=device, dtype=kind)
    right = torch.randn(side, side, device=device, dtype=kind)
    out = torch.empty_like(left)
    for _ in range(3):  # the first ones set things up
        torch.mm(left, right, out=out)
    _wait_for_gpu(cuda)
    best = 0.0
    for _ in range(SLICES):
        began, products, elapsed = time.perf_counter(), 0, 0.0
        while elapsed < seconds / SLICES:
            for _ in range(4):
                torch.mm(left, right, out=out)
            _wait_for_gpu(cuda)
            products += 4
            elapsed = time.perf_counter() - began
        best = max(best, 2.0 * side**3 * products / elapsed)
    return best


def _wait_for_gpu(cuda: bool) -> None:
    if cuda:
        torch.cuda.synchronize()


def list_precisions(cuda: bool) -> dict[str, torch.dtype]:
    """Return the precisions that contestants use. On a GPU, TLiDB uses float16."""
    kinds = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    return {**kinds, "float16": torch.float16} if cuda else kinds


if __name__ == "__main__":
    kinds = list_precisions(torch.cuda.is_available())
    print(
        json.dumps(
            {name: measure_matrix_rate(int(sys.argv[1]), kind) for name, kind in kinds.items()}
        )
    )
