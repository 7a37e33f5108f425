"""Counts of a training's operations on the fake CUDA device (``fake_cuda``).

Import this after ``fake_cuda.pretend``. Dispatched operations are counted: a fused or foreach
operation counts once although it may launch several kernels. Counts are therefore for comparisons,
not for timing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn import functional
from torch.utils import _foreach_utils
from torch.utils._python_dispatch import TorchDispatchMode

CUDA = torch.device("cuda")
aten = torch.ops.aten
NO_KERNEL = {"empty", "empty_like", "empty_strided", "new_empty", "_unsafe_view", "_reshape_alias",
             "_pin_memory", "is_pinned", "lift_fresh", "device"}  # fmt: skip
"""Operations that launch no kernel although they are not views."""
NONDETERMINISTIC = {
    "_flash_attention_backward",
    "_scaled_dot_product_cudnn_attention_backward",
    "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_flash_attention_backward",
    "bincount",
    "index_copy",  # deterministic only in a slow sorted variant
    "index_copy_",
    "put_",
    "scatter_reduce",
}
"""Operations that the models might use and whose results on CUDA depend on the order of threads.

Source: torch's documentation of ``use_deterministic_algorithms``.
"""


@dataclass
class Counts:
    """Counts since the last ``clear``.

    Attributes:
        operations: name → number of calls on the device, without views.
        blocking_copies: copies to the device that the host waits for: not from pinned memory, or
            not marked as non-blocking.
        waits: values and masks that the host reads from the device.
        saved: bytes that the backward pass needs, by storage.
    """

    operations: Counter[str] = field(default_factory=Counter)
    blocking_copies: int = 0
    copies: int = 0
    waits: int = 0
    saved: dict[int, int] = field(default_factory=dict)

    def clear(self) -> None:
        """Count from zero."""
        self.operations.clear()
        self.saved.clear()
        self.blocking_copies = self.copies = self.waits = 0

    def summary(self) -> dict[str, int]:
        """The numbers that have ceilings, and the bytes saved."""
        return {
            "launches": self.operations.total(),
            "blocking_copies": self.blocking_copies,
            "copies": self.copies,
            "waits": self.waits,
            "casts": self.operations["_to_copy"],
            "saved_bytes": sum(self.saved.values()),
        }


class Watch(TorchDispatchMode):
    """Mode that counts operations, and supplies values that were never computed.

    The value True ends every loop. ``rows``: number of rows that a mask selects.
    """

    def __init__(self, counts: Counts, rows: int) -> None:
        super().__init__()
        self.counts, self.rows = counts, rows

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if func is aten._local_scalar_dense.default:
            self.counts.waits += args[0].is_cuda
            return args[0].dtype == torch.bool or 1
        if func is aten.index.Tensor and _is_mask(args[1][0]):
            self.counts.waits += args[0].is_cuda
            return args[0].new_empty((self.rows, *args[0].shape[args[1][0].dim() :]))
        if func is aten._pin_memory.default:
            pinned = args[0].clone()
            pinned.pinned = True
            return pinned
        if func is aten.is_pinned.default:
            return getattr(args[0], "pinned", False)
        if torch.is_inference_mode_enabled() and func.namespace == "aten":
            with self:
                if (made := func.decompose(*args, **kwargs)) is not NotImplemented:
                    return made
        made = func(*args, **kwargs)
        if name == "_to_copy" and args[0].device != made.device:
            self._count_copy(args[0], made, kwargs)
        elif not func.is_view and name not in NO_KERNEL and _on_device(made, args):
            self.counts.operations[name] += 1
        return made

    def _count_copy(self, source: Tensor, made: Tensor, kwargs: dict[str, Any]) -> None:
        if not made.is_cuda:
            self.counts.waits += 1
            return
        self.counts.copies += 1
        pinned = getattr(source, "pinned", False)
        self.counts.blocking_copies += not (pinned and kwargs.get("non_blocking"))

    def save(self, tensor: Tensor) -> Tensor:
        """Note what the backward pass needs; for ``saved_tensors_hooks``."""
        if tensor.is_cuda and not isinstance(tensor, nn.Parameter):
            storage = tensor.untyped_storage()
            self.counts.saved[storage._cdata] = storage.nbytes()
        return tensor


@contextmanager
def watched(rows: int) -> Iterator[Counts]:
    """Count the operations of a block on the fake device. ``rows``: see ``Watch``."""
    counts = Counts()
    watch = Watch(counts, rows)
    with ExitStack() as stack:
        for target, name, replacement in _REPLACED:
            stack.enter_context(mock.patch.object(target, name, replacement))
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(watch)
        stack.enter_context(torch.autograd.graph.saved_tensors_hooks(watch.save, lambda t: t))
        yield counts


def _is_mask(index: Any) -> bool:
    return index is not None and index.dtype == torch.bool


def _on_device(made: Any, args: Any) -> bool:
    """Return whether an operation runs on the device: a result or an argument is on it."""
    return any(
        value.is_cuda
        for group in (made, *args)
        for value in (group if isinstance(group, (list, tuple)) else (group,))
        if isinstance(value, Tensor)
    )


# --- behaviour of a build with CUDA --------------------------------------------------------------

_tensor = torch.tensor


def _new_tensor(data: Any, *args: Any, device: Any = None, **kwargs: Any) -> Tensor:
    """Replace ``torch.tensor``, whose copy to the device is invisible to a mode."""
    made = _tensor(data, *args, **kwargs)
    if isinstance(made, FakeTensor):
        made.constant = None
    return made if device is None else made.to(device)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    **_: Any,
) -> Tensor:
    """Select the attention kernel like torch on a GPU.

    Half precision without a bias uses flash attention. Otherwise the memory-efficient kernel is
    used, which requires a bias with aligned rows. If both are switched off, the formula is used.
    """
    if not torch.backends.cuda.flash_sdp_enabled():
        return aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale
        )[0]
    if attn_mask is None and query.dtype == torch.bfloat16:
        return aten._scaled_dot_product_flash_attention(
            query, key, value, dropout_p, is_causal, scale=scale
        )[0]
    if attn_mask is not None:
        width = attn_mask.shape[-1]
        if width % 8:
            attn_mask = functional.pad(attn_mask, (0, -width % 8))[..., :width]
        attn_mask = attn_mask.expand(*query.shape[:-1], width)
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, attn_mask, True, dropout_p, is_causal, scale=scale
    )[0]


_REPLACED = (
    (torch, "tensor", _new_tensor),
    (torch.cuda, "is_available", lambda: True),
    (torch.cuda, "is_bf16_supported", lambda *_: True),
    (torch.cuda, "get_device_capability", lambda *_: (9, 0)),
    (torch.backends.cuda, "is_flash_attention_available", lambda: True),
    (functional, "scaled_dot_product_attention", _attention),
    # Otherwise fake tensors are processed one by one instead of together like real ones.
    (_foreach_utils, "_foreach_supported_types", [Tensor, nn.Parameter, FakeTensor]),
)
