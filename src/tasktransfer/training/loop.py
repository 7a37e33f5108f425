"""The one training loop. Read it top to bottom: every algorithm of the study is calls of this.

Paper, Appendix B: Adam without weight decay, constant learning rate, gradient norm clipped, dev
metrics after every epoch, the first best epoch kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from tasktransfer.errors import TrainingError
from tasktransfer.models.encoded import EncodedSplit
from tasktransfer.models.family import FamilyModel
from tasktransfer.stage import Training
from tasktransfer.tasks.card import Task
from tasktransfer.training.batches import Batch, epoch_batches, micro_batches, task_weights
from tasktransfer.training.evaluate import evaluate
from tasktransfer.training.progress import Progress

Splits = Mapping[str, EncodedSplit]


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one pass over the training set left. Losses are means over the task's updates."""

    epoch: int
    train_loss: dict[str, float]
    dev: dict[str, dict[str, float]]
    selection_score: float
    seconds: float


@dataclass(slots=True)
class Trained:
    """The history of a training, and the weights of its best epoch (on the CPU)."""

    epochs: list[Epoch] = field(default_factory=list)
    best_epoch: int = 0
    best_score: float = float("-inf")
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    tokens: int = 0
    samples: int = 0
    train_seconds: float = 0.0
    dev_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Setup:
    """How the hardware is used. Nothing here changes a result beyond floating-point noise."""

    device: torch.device
    token_budget: int
    eval_token_budget: int
    autocast: Callable[[], AbstractContextManager[object]]


def train(
    model: FamilyModel,
    tasks: Mapping[str, Task],
    train_splits: Splits,
    dev_splits: Splits,
    training: Training,
    seed: int,
    setup: Setup,
    progress: Progress,
) -> Trained:
    """Train on the tasks of ``train_splits``, choose the best epoch on those of ``dev_splits``.

    Raises:
        TrainingError: a loss is not a finite number.
    """
    torch.manual_seed(seed)
    optimiser = torch.optim.Adam(model.module.parameters(), lr=training.learning_rate, fused=True)
    sizes = {name: len(split) for name, split in train_splits.items()}
    weights = task_weights(sizes, training.batch_size, training.task_weighting)
    lengths = {name: split.longest() for name, split in train_splits.items()}
    trained = Trained()
    for epoch in range(1, training.epochs + 1):
        started = time.perf_counter()
        model.module.train()
        losses: list[tuple[str, Tensor]] = []
        for batch in epoch_batches(sizes, training.batch_size, seed, epoch):
            split = train_splits[batch.task]
            groups = micro_batches(split, batch.units, lengths[batch.task], setup.token_budget)
            losses.append((batch.task, _add_gradients(model, split, batch, groups, weights, setup)))
            torch.nn.utils.clip_grad_norm_(model.module.parameters(), training.max_grad_norm)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            trained.samples += len(batch.units)
            progress.advance(len(batch.units))
        train_loss = _mean_losses(losses, epoch)
        ended = time.perf_counter()
        dev, score = _dev(model, tasks, dev_splits, training, setup, progress)
        trained.train_seconds += ended - started
        trained.dev_seconds += time.perf_counter() - ended
        seconds = time.perf_counter() - started
        trained.epochs.append(Epoch(epoch, train_loss, dev, score, seconds))
        if score > trained.best_score:
            trained.best_epoch, trained.best_score = epoch, score
            trained.best_weights = _copy_weights(model)
        progress.epoch(epoch, train_loss, score, trained.best_epoch)
    trained.tokens = training.epochs * sum(len(s.sequences.values) for s in train_splits.values())
    return trained


def _add_gradients(
    model: FamilyModel,
    split: EncodedSplit,
    batch: Batch,
    groups: list[list[int]],
    weights: Mapping[str, float],
    setup: Setup,
) -> Tensor:
    """Backward through every micro-batch; together the gradient of the batch's mean loss.

    Returns:
        The batch's mean loss, unweighted, still on the device: nothing waits for it here.
    """
    divisor = model.weight(split, batch.units)
    total = torch.zeros((), device=setup.device)
    for group in groups:
        with setup.autocast():
            loss = model.loss(split, group) / divisor
        (loss * weights[batch.task]).backward()  # type: ignore[no-untyped-call]
        total += loss.detach()
    return total


def _mean_losses(losses: list[tuple[str, Tensor]], epoch: int) -> dict[str, float]:
    """Mean loss per task; looked at once an epoch, so that the device never waits for the host."""
    values = torch.stack([loss for _, loss in losses]).tolist()
    by_task: dict[str, list[float]] = {}
    for update, ((task, _), value) in enumerate(zip(losses, values, strict=True), start=1):
        if not np.isfinite(value):
            raise TrainingError(
                f"the loss of {task} became {value} in epoch {epoch}, update {update}: lower "
                "training.learning_rate or set training.precision to float32; nothing was written"
            )
        by_task.setdefault(task, []).append(value)
    return {task: float(np.mean(v)) for task, v in sorted(by_task.items())}


def _dev(
    model: FamilyModel,
    tasks: Mapping[str, Task],
    dev_splits: Splits,
    training: Training,
    setup: Setup,
    progress: Progress,
) -> tuple[dict[str, dict[str, float]], float]:
    """Dev metrics of every selecting task, and the mean of the tasks' scores."""
    measured: dict[str, dict[str, float]] = {}
    scores = []
    for name, split in dev_splits.items():
        with setup.autocast():
            evaluation = evaluate(
                model,
                tasks[name],
                split,
                setup.eval_token_budget,
                training.fidelity,
                progress.advance,
            )
        measured[name] = evaluation.metrics
        scores.append(evaluation.score)
    return measured, float(np.mean(scores))


def _copy_weights(model: FamilyModel) -> dict[str, Tensor]:
    return {k: v.detach().cpu().clone() for k, v in model.module.state_dict().items()}
