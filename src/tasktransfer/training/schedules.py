"""The learning rate schedule of a training, from the schedulers of transformers."""

from __future__ import annotations

import torch

from tasktransfer.core.specs import Training

Scheduler = torch.optim.lr_scheduler.LRScheduler


def create_scheduler(
    optimiser: torch.optim.Optimizer, training: Training, updates: int
) -> Scheduler | None:
    """Create the learning-rate scheduler, or return None for a constant learning rate.

    Args:
        updates: planned updates of the whole training. A training that stops early uses the
            schedule's first rates.
    """
    if training.schedule == "constant" and not training.warmup:
        return None
    from transformers import get_scheduler  # noqa: PLC0415  # takes a second

    constant = "constant_with_warmup"
    scheduler: Scheduler = get_scheduler(
        constant if training.schedule == "constant" else training.schedule,
        optimiser,
        num_warmup_steps=round(training.warmup * updates),
        num_training_steps=updates,
    )
    return scheduler
