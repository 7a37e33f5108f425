"""Dropout whose random numbers cost next to nothing on a CPU.

Drawing one double-precision random number for each activation, as torch does on a CPU, takes a
sixth of an encoder's training time. Sixteen random bits say as well whether an activation stays,
and a fast generator makes them four at a time. The rate is rounded to a multiple of 1/65536, and
what stays is scaled by exactly that rate, so the expected value is unchanged.
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
def dropout_drawn_from(seed: int) -> Iterator[None]:
    """This thread's dropout depends on the seed alone in the block (on a CPU)."""
    _this_thread.source = np.random.SFC64(seed)
    try:
        yield
    finally:
        _this_thread.source = None


def drawn_again() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """For a computation that is done twice, now and later: the second one draws this thread's
    dropout as the first one did (on a CPU)."""
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
    """``nn.Dropout`` as a module; on a GPU it is just that."""

    def forward(self, input: Tensor) -> Tensor:
        return dropped(input, self.p, self.training)


def use_fast_dropout(module: nn.Module) -> None:
    """Put ``FastDropout`` in the place of every ``nn.Dropout`` inside a module."""
    for name, child in module.named_children():
        if type(child) is nn.Dropout:
            setattr(module, name, FastDropout(child.p))
        else:
            use_fast_dropout(child)


def dropped(values: Tensor, rate: float, training: bool = True) -> Tensor:
    """``values`` with a share ``rate`` of them set to zero and the others scaled up."""
    if not training or rate == 0.0:
        return values
    if values.is_cuda or round(rate * _LEVELS) >= _LEVELS:
        return functional.dropout(values, rate)
    return values * _keep(values.shape, rate, values.dtype)


def _keep(shape: torch.Size, rate: float, dtype: torch.dtype) -> Tensor:
    """Zeros, and in the other places what kept values are multiplied by.

    The bits come from a generator that is seeded by torch's own, whose state a training keeps.
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
        # 0 and 1 times the bits of the scale, in place: twice as fast as converting them.
        pattern = int(torch.tensor(scale, dtype=dtype).view(torch.int16))
        return torch.ge(numbers, first_kept, out=numbers).mul_(pattern).view(dtype)
    mask = torch.empty(shape, dtype=dtype)
    return torch.ge(numbers, first_kept, out=mask).mul_(scale)
