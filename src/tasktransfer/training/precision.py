"""The number format of a training's matrix products.

Weights and their updates are always float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch

from tasktransfer.training.bfloat16_gain import is_bfloat16_faster

Precision = Literal["float32", "bfloat16"]


def choose_precision(
    wanted: Literal["auto", "float32", "bfloat16"],
    device: torch.device,
    hidden_size: int,
    note: Callable[[str], None] = lambda text: None,
) -> Precision:
    """Resolve the setting ``training.precision`` to a number format.

    ``auto`` is bfloat16 if the hardware has units for it and is faster with them. This holds for
    GPUs since Ampere, and for CPUs with these units whose measured speed-up at the model's width is
    large enough (docs/decisions/0017-bfloat16-on-cpus.md).

    Args:
        hidden_size: hidden size of the model.
        note: called with a message if a CPU's speed-up is not cached.
    """
    if wanted != "auto":
        return wanted
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    return "bfloat16" if is_bfloat16_faster(hidden_size, note) else "float32"
