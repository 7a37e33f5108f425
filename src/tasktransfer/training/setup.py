"""The use of the hardware by a training.

These settings change results only by floating-point noise and dropout masks.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch

from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.precision import Precision
from tasktransfer.training.workers import Workers


@dataclass(frozen=True, slots=True)
class Setup:
    """Device, precision, tokens per micro-batch, and number of parallel micro-batches."""

    device: torch.device
    train_budget: TokenBudget
    eval_budget: TokenBudget
    precision: Precision = "float32"
    workers: Workers = field(default_factory=Workers)

    def autocast(self) -> AbstractContextManager[object]:
        """Return the autocast context of a forward pass, to be entered in the computing thread."""
        if self.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def cache_casts(self) -> AbstractContextManager[object]:
        """Return a context in which ``autocast`` casts every weight only once.

        The weights must not change in it.
        """
        if self.precision == "float32":
            return nullcontext()
        # torch caches the cast weights until a thread leaves its outermost autocast block.
        return torch.autocast(self.device.type, torch.bfloat16, enabled=False)

    @property
    def notes(self) -> list[str]:
        """Notes on memory use for the record."""
        return [*self.train_budget.notes, *self.eval_budget.notes]
