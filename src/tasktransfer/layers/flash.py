"""Attention over packed sequences with one kernel: torch's variable-length flash attention.

It is used on a GPU, in half precision, and without ``training.deterministic``. Otherwise attention
works on groups of sequences with similar lengths (``attention``), the reference for this kernel.

torch's public function, ``torch.nn.attention.varlen.varlen_attn``, has no dropout, which the
training of BERT and GPT-2 needs. The underlying aten operation is therefore called directly. It is
the only undocumented part of torch in this package, and is used only here.
``tests/unit/test_flash.py`` tests the required behaviour. ``TASKTRANSFER_VARLEN=0`` disables it.
"""

from __future__ import annotations

import os

import torch
from torch import Tensor

VARIABLE = "TASKTRANSFER_VARLEN"
HALF = (torch.float16, torch.bfloat16)
LARGEST_HEAD, HEAD_MULTIPLE = 256, 8
"""Largest head size of the kernels, and the number of which it must be a multiple."""
OLDEST = (8, 0)
"""Minimum compute capability for the kernels (Ampere)."""


def is_usable(query: Tensor) -> bool:
    """Return whether the kernel supports attention with these queries, shape (..., head size)."""
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
    """Compute attention within each of several packed sequences.

    Args:
        query: shape (query tokens, heads, head size); ``key`` and ``value`` likewise.
        ends: cumulative lengths of the sequences' queries, and of their keys, shape
            (sequences + 1,), int32.
        longest: largest number of queries, and of keys, of a sequence.
        rate: dropout rate.

    Returns:
        Shape of ``query``.
    """
    attended: Tensor = torch.ops.aten._flash_attention_forward(
        query, key, value, *ends, *longest, rate, causal, False, scale=scaling
    )[0]
    return attended
