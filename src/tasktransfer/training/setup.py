"""How a training uses its hardware. Nothing here changes a result beyond floating-point noise."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import torch

from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.workers import Workers


@dataclass(frozen=True, slots=True)
class Setup:
    """Device, precision, tokens at a time, and how many portions at a time.

    ``autocast`` must be entered by the thread that computes.
    """

    device: torch.device
    train_budget: TokenBudget
    eval_budget: TokenBudget
    autocast: Callable[[], AbstractContextManager[object]]
    workers: Workers = field(default_factory=Workers)

    @property
    def notes(self) -> list[str]:
        """What the record should say of how memory was used."""
        return [*self.train_budget.notes, *self.eval_budget.notes]
