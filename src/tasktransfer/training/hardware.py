"""How a model is run on what this process has: the one way of trainings, evaluations and fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

from tasktransfer.core.specs import Family
from tasktransfer.models.family import FamilyModel
from tasktransfer.training.device import SLOTS_VARIABLE, slots_per_gpu
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.precision import chosen
from tasktransfer.training.setup import Setup
from tasktransfer.training.switches import set_switches
from tasktransfer.training.token_budgets import token_budgets
from tasktransfer.training.workers import Workers

FEW_TOKENS = 2048
"""On a GPU: micro-batches of fewer are launched more slowly than they are computed."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the config says of it (section ``training``), and the threads of the job. Nothing here
    changes a number beyond floating-point noise and what ``precision`` rounds."""

    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    deterministic: bool = False
    threads: int = 1

    def device(self) -> torch.device:
        """The device of this process, which has leased it by now, and torch's switches set."""
        return set_switches(self.threads, self.deterministic)

    def setup(
        self,
        model: FamilyModel,
        family: Family,
        device: torch.device,
        note: Callable[[str], None] = lambda text: None,
    ) -> Setup:
        """Precision, tokens at a time and workers that suit a model. ``note``: is told what the
        record should say of them."""
        precision = chosen(self.precision, device, model.hidden_size, note)
        train_tokens, eval_tokens = token_budgets(model, family, device, precision)
        if device.type != "cpu" and train_tokens < FEW_TOKENS:
            note(
                f"1/{slots_per_gpu()} of the GPU's memory leaves room for {train_tokens} tokens at "
                f"a time, which is slow: let fewer trainings share it ({SLOTS_VARIABLE})"
            )
        budgets = TokenBudget(train_tokens, "training"), TokenBudget(eval_tokens, "evaluation")
        side_by_side = device.type == "cpu" and model.side_by_side
        workers = Workers(self.threads if side_by_side else 1)
        return Setup(device, *budgets, precision, workers)
