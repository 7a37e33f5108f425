"""Dropout with cheap random numbers on a CPU.

On a CPU torch samples one double-precision random number per activation, which takes a sixth of an
encoder's training time. Sixteen random bits are enough to decide whether an activation is kept, and
a fast generator produces four such numbers at a time. The rate is rounded to a multiple of 1/65536.
Kept activations are scaled by exactly this rate, so the expected value does not change.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

_LEVELS = 1 << 16


_this_thread = threading.local()


@contextmanager
def use_dropout_seed(seed: int) -> Iterator[None]:
    """Seed this thread's dropout on the CPU within a ``with`` block."""
    _this_thread.source = np.random.SFC64(seed)
    try:
        yield
    finally:
        _this_thread.source = None


def create_repeatable_dropout() -> tuple[
    AbstractContextManager[None], AbstractContextManager[None]
]:
    """Return two contexts with equal dropout masks, for a computation and its repetition.

    They apply to this thread's dropout on a CPU.
    """
    source = getattr(_this_thread, "source", None)
    before = None if source is None else source.state

    @contextmanager
    def later() -> Iterator[None]:
        now = getattr(_this_thread, "source", None)
        if before is not None:
            _this_thread.source = np.random.SFC64()
            _this_thread.source.state = before
        try:
            yield
        finally:
            _this_thread.source = now

    return nullcontext(), later()


class FastDropout(nn.Dropout):
    """A replacement of ``nn.Dropout``, identical to it on a GPU."""

    def forward(self, input: Tensor) -> Tensor:
        return apply_dropout(input, self.p, self.training)


def use_fast_dropout(module: nn.Module) -> None:
    """Replace each ``nn.Dropout`` in a module by ``FastDropout``."""
    for name, child in module.named_children():
        if type(child) is nn.Dropout:
            setattr(module, name, FastDropout(child.p))
        else:
            use_fast_dropout(child)


def apply_dropout(values: Tensor, rate: float, training: bool = True) -> Tensor:
    """Set a fraction ``rate`` of ``values`` to zero, and scale up the others."""
    if not training or rate == 0.0:
        return values
    if values.is_cuda or round(rate * _LEVELS) >= _LEVELS:
        return functional.dropout(values, rate)
    return values * _sample_mask(values.shape, rate, values.dtype)


def _sample_mask(shape: torch.Size, rate: float, dtype: torch.dtype) -> Tensor:
    """Sample a dropout mask, which contains zeros and the scale of kept values.

    The generator is seeded by torch's, whose state a training stores.
    """
    count = math.prod(shape)
    source = getattr(_this_thread, "source", None)
    if source is None:
        source = np.random.SFC64(int(torch.randint(1 << 62, ())))
    bits = source.random_raw(-(-count // 4))
    numbers = torch.from_numpy(bits.view(np.int16)[:count]).view(shape)
    zeros = round(rate * _LEVELS)
    first_kept, scale = zeros - _LEVELS // 2, _LEVELS / (_LEVELS - zeros)
    if dtype == torch.bfloat16:
        # Multiply 0 and 1 by the bits of the scale in place: twice as fast as a conversion.
        pattern = int(torch.tensor(scale, dtype=dtype).view(torch.int16))
        return torch.ge(numbers, first_kept, out=numbers).mul_(pattern).view(dtype)
    mask = torch.empty(shape, dtype=dtype)
    return torch.ge(numbers, first_kept, out=mask).mul_(scale)
