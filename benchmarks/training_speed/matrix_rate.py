"""How fast this machine multiplies matrices: the limit that a training is measured against.

``python -m benchmarks.training_speed.matrix_rate THREADS`` prints operations a second, two a
multiplication and addition, for each precision. (``training.matrix_product`` measures a single
thread, for the forecast.)
"""

from __future__ import annotations

import json
import sys
import time

import torch

SECONDS, SLICES = 1.0, 10
SIDE = {"cpu": 1024, "cuda": 8192}


def matrix_rate(threads: int, kind: torch.dtype, seconds: float = SECONDS) -> float:
    """Operations a second of square matrix products, in the best of some slices of the time: the
    limit is what the machine can do while nobody else uses it."""
    torch.set_num_threads(threads)
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    side = SIDE[device]
    left = torch.randn(side, side, device=device, dtype=kind)
    right = torch.randn(side, side, device=device, dtype=kind)
    out = torch.empty_like(left)
    for _ in range(3):  # the first ones set things up
        torch.mm(left, right, out=out)
    _wait(cuda)
    best = 0.0
    for _ in range(SLICES):
        began, products, elapsed = time.perf_counter(), 0, 0.0
        while elapsed < seconds / SLICES:
            for _ in range(4):
                torch.mm(left, right, out=out)
            _wait(cuda)
            products += 4
            elapsed = time.perf_counter() - began
        best = max(best, 2.0 * side**3 * products / elapsed)
    return best


def _wait(cuda: bool) -> None:
    if cuda:
        torch.cuda.synchronize()


def precisions(cuda: bool) -> dict[str, torch.dtype]:
    """What contestants compute in: on a GPU TLiDB does in float16."""
    kinds = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    return {**kinds, "float16": torch.float16} if cuda else kinds


if __name__ == "__main__":
    kinds = precisions(torch.cuda.is_available())
    print(json.dumps({name: matrix_rate(int(sys.argv[1]), kind) for name, kind in kinds.items()}))
