"""How many tokens go through a model at once: large enough to fill the hardware, small enough for
its memory. No result depends on it beyond floating-point noise and dropout's draws."""

from __future__ import annotations

import torch

from tasktransfer.core.specs import Family
from tasktransfer.models.family import FamilyModel
from tasktransfer.training.device import slots_per_gpu
from tasktransfer.training.precision import Precision

CPU_TOKENS: dict[Precision, tuple[int, int]] = {"float32": (1024, 2048), "bfloat16": (2048, 4096)}
"""In training and in evaluation."""
GPU_MOST = (32768, 65536)
"""The same on a GPU. An update of 60 sequences of 512 tokens is below it, and no tensor of logits
has more elements than a 32-bit index reaches."""

BYTES_A_TOKEN: dict[Family, dict[Precision, int]] = {
    "encoder": {"float32": 90, "bfloat16": 52},
    "decoder": {"float32": 156, "bfloat16": 105},
    "encoder_decoder": {"float32": 142, "bfloat16": 108},
    "dual_encoder": {"float32": 90, "bfloat16": 52},
}
"""What the backward pass needs of a token for each layer and unit of the hidden size; in bfloat16
0.45, 0.9 and 0.95 MiB at base shape. Counted on tensors without values and modelled
(tests/fidelity/test_gpu_path.py): a fifth to a third above what is kept, for what lives for
moments."""
BYTES_A_PARAMETER = {True: 20, False: 6}
"""Of one that moves: weight, gradient and two moments in float32; weight and gradient in bfloat16.
Of one that is frozen: the two weights."""
OTHER_BYTES = 2 << 30
"""CUDA's context, libraries' workspaces, and what is needed for moments only."""
SHARE = 0.8
"""Of the memory that is left, since it is not handed out without gaps."""


def token_budgets(
    model: FamilyModel, family: Family, device: torch.device, precision: Precision
) -> tuple[int, int]:
    """Tokens of a micro-batch in training and in evaluation, padding included.

    A GPU's memory is divided by the trainings that may share it. What does not fit all the same is
    halved (``memory.TokenBudget``).
    """
    if device.type == "cpu":
        return CPU_TOKENS[precision]
    total = torch.cuda.get_device_properties(device).total_memory / slots_per_gpu()
    parameters = model.module.parameters()
    held = sum(BYTES_A_PARAMETER[weight.requires_grad] * weight.numel() for weight in parameters)
    left = total - OTHER_BYTES - held
    a_token = BYTES_A_TOKEN[family][precision] * model.layers * model.hidden_size
    fitting = max(1, int(SHARE * left / a_token))
    # Without a backward pass a token takes less than a quarter.
    return min(GPU_MOST[0], fitting), min(GPU_MOST[1], 4 * fitting)
