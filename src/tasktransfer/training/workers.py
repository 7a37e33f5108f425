"""Micro-batches of a batch that go through the model side by side, one CPU core each.

A training on several cores that splits every single operation waits at the end of each one: two
cores are 1.3 times as fast as one. Micro-batches have nothing to wait for. What comes out does not
depend on which worker is faster: who does what is fixed, and sums are taken in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")


class Workers:
    """``count`` threads that each compute with one core; with 1, the caller works itself."""

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self._threads = (
            ThreadPoolExecutor(count, "worker", partial(torch.set_num_threads, 1))
            if count > 1
            else None
        )

    def shards(self, work: Sequence[T]) -> list[Sequence[T]]:
        """Deal work out in turn. Micro-batches come sorted and of like cost, so shards do too."""
        return [work[i :: self.count] for i in range(self.count) if work[i :: self.count]]

    def each(self, function: Callable[[T], R], work: Sequence[T]) -> list[R]:
        """What the function makes of each, in the order given; the first error, once all ended."""
        if self._threads is None:
            return [function(item) for item in work]
        running = [self._threads.submit(function, item) for item in work]
        wait(running)  # after an error nothing goes on in the background
        return [done.result() for done in running]
