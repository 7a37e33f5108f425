"""How fast this machine multiplies matrices: the calibration of ``tasktransfer plan --calibrate``.

``python -m tasktransfer.training.matrix_product`` prints it as JSON. One thread on a CPU, as a
training has by default; bfloat16 on a GPU that computes in it, as a training would.
"""

from __future__ import annotations

import json
import os
import platform
import time
from typing import Any

import torch

SECONDS = 1.0
SIDE = {"cpu": 768, "cuda": 8192}


def measure(seconds: float = SECONDS) -> dict[str, Any]:
    """Operations a second (two a multiplication and addition) of square matrix products."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(1)
    bf16 = device == "cuda" and torch.cuda.is_bf16_supported()
    side = SIDE[device]
    shape = {"device": device, "dtype": torch.bfloat16 if bf16 else torch.float32}
    left, right = torch.ones(side, side, **shape), torch.ones(side, side, **shape)  # type: ignore[call-overload]
    _product(left, right)  # the first one sets things up
    began, products = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < seconds or not products:
        _product(left, right)
        products += 1
    name = torch.cuda.get_device_name() if device == "cuda" else f"one of {os.cpu_count()} cores"
    return {
        "device": device,
        "flops": 2.0 * side**3 * products / elapsed,
        "host": platform.node(),
        "where": f"{platform.node()}, {name}",
    }


def _product(left: torch.Tensor, right: torch.Tensor) -> None:
    left @ right
    if left.is_cuda:
        torch.cuda.synchronize()


if __name__ == "__main__":
    print(json.dumps(measure()))
