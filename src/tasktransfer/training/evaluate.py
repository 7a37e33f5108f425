"""The one way in which dev and test sets are predicted and scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from tasktransfer import metrics
from tasktransfer.core.specs import Fidelity
from tasktransfer.models.encoded import EncodedSplit
from tasktransfer.models.family import FamilyModel
from tasktransfer.tasks.card import Task
from tasktransfer.training.setup import Setup

Prediction = tuple[str, ...]

TOLD_TOGETHER = 4
"""Portions a worker computes between two signs of progress."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Predictions on one split of one task, one an instance, and what they are worth (0-100)."""

    predictions: list[Prediction]
    metrics: dict[str, float]
    score: float


def predict(
    model: FamilyModel,
    split: EncodedSplit,
    token_budget: int,
    setup: Setup,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Prediction]:
    """Predict every instance of a split, in the split's order.

    Which units go together is the model's matter and changes no prediction beyond floating-point
    noise. The outputs of a multi-output instance that were asked one by one are put together again.
    """
    model.module.eval()
    by_unit: list[Prediction] = [()] * len(split)

    def of_share(share: Sequence[list[int]]) -> list[tuple[int, Prediction]]:
        with torch.inference_mode(), setup.autocast():
            each = [(portion, model.predict(split, portion)) for portion in share]
        return [pair for units, found in each for pair in zip(units, found, strict=True)]

    portions = model.prediction_portions(split, range(len(split)), token_budget)
    step = TOLD_TOGETHER * setup.workers.count
    for begin in range(0, len(portions), step):
        some = portions[begin : begin + step]
        for found in setup.workers.each(of_share, setup.workers.shares(some)):
            for unit, prediction in found:
                by_unit[unit] = prediction
        progress(sum(map(len, some)))
    by_instance: list[Prediction] = [()] * len(split.ids)
    for unit, prediction in enumerate(by_unit):
        by_instance[int(split.instance[unit])] += prediction
    return by_instance


def evaluate(
    model: FamilyModel,
    task: Task,
    split: EncodedSplit,
    setup: Setup,
    fidelity: Fidelity,
    progress: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Predict a split and score it with the task's metrics.

    Raises:
        MemoryShortageError: not even one instance at a time fits into memory.
    """
    predictions = setup.eval_budget.fitting(
        lambda tokens: predict(model, split, tokens, setup, progress), undo=lambda: None
    )
    values = metrics.evaluate(task, predictions, split.targets, fidelity=fidelity)
    return Evaluation(predictions, values, metrics.score(task, values))
