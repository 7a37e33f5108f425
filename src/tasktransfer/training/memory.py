"""Out of memory is no end: the micro-batch is halved and the work done again.

The result is the same but for rounding and dropout's masks, of which each micro-batch draws its
own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import torch

from tasktransfer.errors import MemoryShortageError

T = TypeVar("T")

FEWEST_TOKENS = 8
"""Below this every example is a micro-batch of its own; halving further changes nothing."""


@dataclass(slots=True)
class TokenBudget:
    """Tokens of a micro-batch, padding included; halved for good where they do not fit.

    ``what`` is said in the notes, which end up in the record.
    """

    tokens: int
    what: str
    notes: list[str] = field(default_factory=list)

    def fitting(self, work: Callable[[int], T], undo: Callable[[], None]) -> T:
        """``work(tokens)``, with ever fewer tokens until it fits into memory.

        Args:
            work: computes something in micro-batches of at most so many tokens; how many must
                make no difference but rounding and dropout's masks.
            undo: takes back what a ``work`` that failed half-way has left.

        Raises:
            MemoryShortageError: even single examples do not fit.
        """
        while True:
            shortage = None
            try:
                return work(self.tokens)
            except RuntimeError as error:
                if not is_shortage(error):
                    raise
                shortage = str(error).splitlines()[0]
            # Outside the handler: the exception holds on to the tensors of the failed try.
            undo()
            self._halve(shortage)

    def _halve(self, shortage: str) -> None:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if self.tokens <= FEWEST_TOKENS:
            raise MemoryShortageError(
                f"out of memory in {self.what}, even with one instance at a time: {shortage}; use "
                "a device with more memory, fewer trainings a device, or a smaller max_length"
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
"""What errors say when memory ran out: torch's allocator has an error of its own, the CPU, the CUDA
driver (pinned memory, a context) and CUDA's libraries (workspaces) have not."""


def is_shortage(error: RuntimeError) -> bool:
    """Whether an error of torch says that memory ran out, on a GPU or on the CPU."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return any(phrase in str(error) for phrase in SHORTAGES)
