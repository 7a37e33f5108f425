"""Recovery from out-of-memory errors: the micro-batch is halved, and the computation repeated.

The result differs only by rounding and by dropout masks, which each micro-batch samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import torch

from tasktransfer.errors import MemoryShortageError

T = TypeVar("T")

MIN_TOKENS = 8
"""Smallest budget: below it, every example is its own micro-batch, and halving has no effect."""


@dataclass(slots=True)
class TokenBudget:
    """The tokens of a micro-batch, including padding; halved permanently if they do not fit.

    Attributes:
        what: name of the computation in the notes.
        notes: notes for the record.
    """

    tokens: int
    what: str
    notes: list[str] = field(default_factory=list)

    def run_within_memory(self, work: Callable[[int], T], undo: Callable[[], None]) -> T:
        """Run ``work(tokens)`` with the largest number of tokens that fits into memory.

        The number is halved after each out-of-memory error.

        Args:
            work: function that computes in micro-batches of at most the given number of tokens. The
                number may change the result only by rounding and dropout masks.
            undo: function that reverts the effects of a ``work`` that failed halfway.

        Raises:
            MemoryShortageError: even single examples do not fit.
        """
        while True:
            shortage = None
            try:
                return work(self.tokens)
            except RuntimeError as error:
                if not is_memory_shortage(error):
                    raise
                shortage = str(error).splitlines()[0]
            # Outside of the handler, because the exception references tensors of the failed try.
            undo()
            self._reduce_budget(shortage)

    def _reduce_budget(self, shortage: str) -> None:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if self.tokens <= MIN_TOKENS:
            raise MemoryShortageError(
                f"The memory is not sufficient for {self.what}, even with one instance at a time "
                f"({shortage}). Use a device with more memory, fewer runs per device, or a smaller "
                "max_length."
            )
        self.tokens //= 2
        self.notes[:] = [note for note in self.notes if self.what not in note]
        self.notes.append(f"out of memory: {self.what} in micro-batches of {self.tokens} tokens")


SHORTAGES = (
    "can't allocate memory",
    "not enough memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)
"""Phrases of out-of-memory errors without their own exception class.

Torch's GPU allocator has its own class. The CPU, the CUDA driver (pinned memory, a context) and
CUDA's libraries (workspaces) have none."""


def is_memory_shortage(error: RuntimeError) -> bool:
    """Return whether a torch error means that GPU or CPU memory is exhausted."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return any(phrase in str(error) for phrase in SHORTAGES)
