"""Choice of device, precision and batch sizes, shared by trainings, evaluations and fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

from tasktransfer.core.specs import Family
from tasktransfer.models.family import FamilyModel
from tasktransfer.training.device import SLOTS_VARIABLE, read_slots_per_gpu
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.precision import choose_precision
from tasktransfer.training.setup import Setup
from tasktransfer.training.switches import set_switches
from tasktransfer.training.token_budgets import get_token_budgets
from tasktransfer.training.workers import Workers

FEW_TOKENS = 2048
"""Smallest efficient micro-batch on a GPU: launching a smaller one takes longer than computing."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """The hardware settings of the config (section ``training``), and the threads of the job.

    They change results only by floating-point noise and by the rounding of ``precision``.
    """

    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    deterministic: bool = False
    threads: int = 1

    def prepare_device(self) -> torch.device:
        """Set torch's global switches, and return this process's leased device."""
        return set_switches(self.threads, self.deterministic)

    def choose_setup(
        self,
        model: FamilyModel,
        family: Family,
        device: torch.device,
        note: Callable[[str], None] = lambda text: None,
    ) -> Setup:
        """Choose the precision, tokens per micro-batch and workers for a model.

        Args:
            note: called with notes for the record.
        """
        precision = choose_precision(self.precision, device, model.hidden_size, note)
        train_tokens, eval_tokens = get_token_budgets(model, family, device, precision)
        if device.type != "cpu" and train_tokens < FEW_TOKENS:
            note(
                f"1/{read_slots_per_gpu()} of the GPU's memory fits only {train_tokens} tokens at "
                f"a time, which is slow. Let fewer runs share the GPU ({SLOTS_VARIABLE})."
            )
        budgets = TokenBudget(train_tokens, "training"), TokenBudget(eval_tokens, "evaluation")
        side_by_side = device.type == "cpu" and model.side_by_side
        workers = Workers(self.threads if side_by_side else 1)
        return Setup(device, *budgets, precision, workers)
