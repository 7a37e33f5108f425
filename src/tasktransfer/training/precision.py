"""Which number format a training multiplies in. Weights, and what they are updated by, are float32
always."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch

from tasktransfer.training.bfloat16_gain import least_gain_reached

Precision = Literal["float32", "bfloat16"]

WIDE = 256
"""Hidden size from which a CPU computes in bfloat16: at 384 it is faster, at 64 converting costs
more than it spares; nothing between was measured (docs/performance.md)."""


def chosen(
    wanted: Literal["auto", "float32", "bfloat16"],
    device: torch.device,
    hidden_size: int,
    threads: int = 1,
    note: Callable[[str], None] = lambda text: None,
) -> Precision:
    """What ``training.precision`` comes to.

    ``auto`` is bfloat16 where the hardware multiplies in it by units of its own and gains by it:
    GPUs since Ampere; CPUs that have the units and were measured to gain, where the model is wide
    enough (docs/decisions/0017-bfloat16-on-cpus.md).

    Args:
        hidden_size: of the model.
        threads: of the training, on a CPU.
        note: told why a CPU with such units is not used for it, where that is not as it should be.
    """
    if wanted != "auto":
        return wanted
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    # By the width first: small models compute alike on every CPU, and nothing is measured for them.
    gains = hidden_size >= WIDE and least_gain_reached(threads, note)
    return "bfloat16" if gains else "float32"
