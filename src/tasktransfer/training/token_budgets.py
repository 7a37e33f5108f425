"""The number of tokens per micro-batch: large enough to fill the hardware, and to fit its memory.

It changes results only by floating-point noise and dropout masks.
"""

from __future__ import annotations

import torch

from tasktransfer.core.specs import Family
from tasktransfer.models.family import FamilyModel
from tasktransfer.training.device import read_slots_per_gpu
from tasktransfer.training.precision import Precision

CPU_TOKENS: dict[Precision, tuple[int, int]] = {"float32": (1024, 2048), "bfloat16": (2048, 4096)}
"""Tokens of a micro-batch on a CPU in training and in evaluation."""
MAX_GPU_TOKENS = (32768, 65536)
"""Maximum tokens of a micro-batch on a GPU in training and in evaluation.

An update of 60 sequences of 512 tokens is below it, and no tensor of logits has more elements than
a 32-bit index can address."""

BYTES_PER_TOKEN: dict[Family, dict[Precision, int]] = {
    "encoder": {"float32": 90, "bfloat16": 52},
    "decoder": {"float32": 156, "bfloat16": 105},
    "encoder_decoder": {"float32": 142, "bfloat16": 108},
    "dual_encoder": {"float32": 90, "bfloat16": 52},
}
"""Bytes that the backward pass needs per token, layer and unit of the hidden size.

In bfloat16 this is 0.45, 0.9 and 0.95 MiB per token at base shape. The values were counted on
tensors without data and modelled (tests/fidelity/test_gpu_path.py). They are a fifth to a third
above the stored activations, to allow for temporary tensors."""
BYTES_PER_PARAMETER = {True: 20, False: 6}
"""Bytes per parameter, by whether it is trained.

Trained: weight, gradient and two moments in float32; weight and gradient in bfloat16. Frozen: the
weight in both formats."""
OTHER_BYTES = 2 << 30
"""Bytes for CUDA's context, workspaces of libraries, and temporary tensors."""
SHARE = 0.8
"""Fraction of the remaining memory that is used, to allow for fragmentation."""


def get_token_budgets(
    model: FamilyModel, family: Family, device: torch.device, precision: Precision
) -> tuple[int, int]:
    """Return the maximum tokens per micro-batch in training and in evaluation, with padding.

    A GPU's memory is divided by the number of trainings that may share it. If a micro-batch still
    does not fit, it is halved (``memory.TokenBudget``).
    """
    if device.type == "cpu":
        return CPU_TOKENS[precision]
    total = torch.cuda.get_device_properties(device).total_memory / read_slots_per_gpu()
    parameters = model.module.parameters()
    held = sum(BYTES_PER_PARAMETER[weight.requires_grad] * weight.numel() for weight in parameters)
    left = total - OTHER_BYTES - held
    a_token = BYTES_PER_TOKEN[family][precision] * model.layers * model.hidden_size
    fitting = max(1, int(SHARE * left / a_token))
    # Without a backward pass a token takes less than a quarter.
    return min(MAX_GPU_TOKENS[0], fitting), min(MAX_GPU_TOKENS[1], 4 * fitting)
