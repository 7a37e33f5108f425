"""Which number format a training multiplies in. Weights, and what they are updated by, are float32
always."""

from __future__ import annotations

from typing import Literal

import torch

Precision = Literal["float32", "bfloat16"]

WIDE = 256
"""Hidden size from which a CPU computes in bfloat16: at 384 it is faster, at 64 converting costs
more than it spares; nothing between was measured (docs/performance.md)."""


def chosen(
    wanted: Literal["auto", "float32", "bfloat16"], device: torch.device, hidden_size: int
) -> Precision:
    """What ``training.precision`` comes to: ``auto`` is bfloat16 where the hardware multiplies in
    it by units of its own (GPUs since Ampere, CPUs with AMX) and the model is wide enough."""
    if wanted != "auto":
        return wanted
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    return "bfloat16" if has_amx() and hidden_size >= WIDE else "float32"


def has_amx() -> bool:
    """Whether this machine's CPU has AMX with bfloat16, and torch knows."""
    return bool(torch.cpu.get_capabilities().get("amx_bf16", False))
