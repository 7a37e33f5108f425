"""How a training uses its hardware. Nothing here changes a result beyond floating-point noise and
dropout's draws."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch

from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.precision import Precision
from tasktransfer.training.workers import Workers


@dataclass(frozen=True, slots=True)
class Setup:
    """Device, precision, tokens at a time, and how many micro-batches at a time."""

    device: torch.device
    train_budget: TokenBudget
    eval_budget: TokenBudget
    precision: Precision = "float32"
    workers: Workers = field(default_factory=Workers)

    def autocast(self) -> AbstractContextManager[object]:
        """What a forward pass is computed in; to be entered by the thread that computes."""
        if self.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def one_update(self) -> AbstractContextManager[object]:
        """A time in which no weight changes: what ``autocast`` converts in it, it converts once."""
        if self.precision == "float32":
            return nullcontext()
        # torch keeps converted weights until a thread leaves its outermost block.
        return torch.autocast(self.device.type, torch.bfloat16, enabled=False)

    @property
    def notes(self) -> list[str]:
        """What the record should say of how memory was used."""
        return [*self.train_budget.notes, *self.eval_budget.notes]
