"""Which number format a training multiplies in. Weights, and what they are updated by, are float32
always."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch

from tasktransfer.training.bfloat16_gain import least_gain_reached

Precision = Literal["float32", "bfloat16"]


def chosen(
    wanted: Literal["auto", "float32", "bfloat16"],
    device: torch.device,
    hidden_size: int,
    note: Callable[[str], None] = lambda text: None,
) -> Precision:
    """What ``training.precision`` comes to.

    ``auto`` is bfloat16 where the hardware multiplies in it by units of its own and gains by it:
    GPUs since Ampere; CPUs that have the units and were measured to gain at the model's width
    (docs/decisions/0017-bfloat16-on-cpus.md).

    Args:
        hidden_size: of the model.
        note: told where what a CPU gains is not remembered.
    """
    if wanted != "auto":
        return wanted
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    return "bfloat16" if least_gain_reached(hidden_size, note) else "float32"
