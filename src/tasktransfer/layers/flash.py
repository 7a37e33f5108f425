"""Attention of packed sequences by one kernel: torch's variable-length flash attention.

On a GPU, in half precision, and where ``training.deterministic`` is not set; else attention works
on groups of like length (``attention``), which is what this is held to.

torch's public function for it, ``torch.nn.attention.varlen.varlen_attn``, has no dropout, which
BERT and GPT-2 are trained with. So the operation below it is called: aten's own, the only part of
torch that is used without being documented, and here alone. ``tests/unit/test_flash.py`` says what
it is relied on for. ``TASKTRANSFER_VARLEN=0`` leaves it out.
"""

from __future__ import annotations

import os

import torch
from torch import Tensor

VARIABLE = "TASKTRANSFER_VARLEN"
HALF = (torch.float16, torch.bfloat16)
LARGEST_HEAD, HEAD_MULTIPLE = 256, 8
"""Sizes of a head that the kernels are built for."""
OLDEST = (8, 0)
"""The compute capability that they need (Ampere)."""


def is_usable(query: Tensor) -> bool:
    """Whether attention with such queries, shape (..., size of a head), can be computed so."""
    size = query.shape[-1]
    return bool(
        query.is_cuda
        and query.dtype in HALF
        and size <= LARGEST_HEAD
        and size % HEAD_MULTIPLE == 0
        and torch.backends.cuda.flash_sdp_enabled()  # type: ignore[no-untyped-call]
        and torch.backends.cuda.is_flash_attention_available()
        and torch.cuda.get_device_capability(query.device) >= OLDEST
        and os.environ.get(VARIABLE) != "0"
    )


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    ends: tuple[Tensor, Tensor],
    longest: tuple[int, int],
    *,
    causal: bool,
    scaling: float,
    rate: float,
) -> Tensor:
    """Attention inside each of some sequences that lie end to end.

    Args:
        query: shape (query tokens, heads, size of a head); ``key`` and ``value`` likewise.
        ends: where each sequence's queries, and its keys, begin and the last one ends, shape
            (sequences + 1,), int32.
        longest: tokens of the longest sequence's queries, and of its keys.
        rate: of dropout.

    Returns:
        Shape of ``query``.
    """
    attended: Tensor = torch.ops.aten._flash_attention_forward(
        query, key, value, *ends, *longest, rate, causal, False, scale=scaling
    )[0]
    return attended
