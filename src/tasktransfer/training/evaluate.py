"""Prediction and scoring of dev and test sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from tasktransfer import metrics
from tasktransfer.core.fidelity import Scoring
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.models.family import FamilyModel
from tasktransfer.tasks.card import Task
from tasktransfer.training.setup import Setup

Prediction = tuple[str, ...]

PROGRESS_MICRO_BATCHES = 4
"""Number of micro-batches that a worker computes between two progress updates."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Predictions for one split of one task, one per instance, and their scores (0-100)."""

    predictions: list[Prediction]
    metrics: dict[str, float]
    score: float


def predict_instances(
    model: FamilyModel,
    split: EncodedSplit,
    token_budget: int,
    setup: Setup,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Prediction]:
    """Predict every instance of a split, in the split's order.

    The model decides which examples form a batch; this changes predictions by floating-point noise
    only. The outputs of a multi-output instance that are predicted one by one are joined again.
    """
    model.module.eval()
    by_example: list[Prediction] = [()] * len(split)

    def predict_shard(shard: Sequence[list[int]]) -> list[tuple[int, Prediction]]:
        with torch.inference_mode(), setup.autocast():
            each = [(micro_batch, model.predict(split, micro_batch)) for micro_batch in shard]
        return [
            pair for examples, answered in each for pair in zip(examples, answered, strict=True)
        ]

    micro_batches = model.split_for_prediction(split, range(len(split)), token_budget)
    step = PROGRESS_MICRO_BATCHES * setup.workers.count
    for begin in range(0, len(micro_batches), step):
        some = micro_batches[begin : begin + step]
        for answered in setup.workers.apply(predict_shard, setup.workers.split_work(some)):
            for example, prediction in answered:
                by_example[example] = prediction
        progress(sum(map(len, some)))
    by_instance: list[Prediction] = [()] * len(split.ids)
    for example, prediction in enumerate(by_example):
        by_instance[int(split.instance[example])] += prediction
    return by_instance


def evaluate_split(
    model: FamilyModel,
    task: Task,
    split: EncodedSplit,
    setup: Setup,
    fidelity: Scoring,
    progress: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Predict a split and score it with the task's metrics.

    Raises:
        MemoryShortageError: not even one instance at a time fits into memory.
    """
    predictions = setup.eval_budget.run_within_memory(
        lambda tokens: predict_instances(model, split, tokens, setup, progress), undo=lambda: None
    )
    values = metrics.evaluate_predictions(task, predictions, split.targets, fidelity=fidelity)
    return Evaluation(predictions, values, metrics.compute_task_score(task, values))
