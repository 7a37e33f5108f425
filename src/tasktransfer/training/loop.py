"""The one training loop. Read it top to bottom: every algorithm of the study is calls of this.

Paper, Appendix B: Adam without weight decay, constant learning rate, gradient norm clipped, dev
metrics after every epoch, the first best epoch kept.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tasktransfer.core.specs import Training
from tasktransfer.errors import TrainingError
from tasktransfer.models.dropout import dropout_drawn_from
from tasktransfer.models.encoded import EncodedSplit
from tasktransfer.models.family import FamilyModel
from tasktransfer.tasks.card import Task
from tasktransfer.training.batches import Batch, epoch_batches, task_weights
from tasktransfer.training.evaluate import evaluate
from tasktransfer.training.progress import Progress
from tasktransfer.training.resume import Snapshots, random_state, restore_random_state
from tasktransfer.training.setup import Setup

Splits = Mapping[str, EncodedSplit]
Gradients = tuple[Tensor | None, ...] | None
"""One a weight, in the order of the module's parameters."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round of the training left. Losses are means over the task's updates."""

    round: int
    train_loss: dict[str, float]
    dev: dict[str, dict[str, float]]
    selection_score: float
    seconds: float


@dataclass(slots=True)
class Trained:
    """The history of a training, and the weights of its best epoch (on the CPU)."""

    rounds: list[Round] = field(default_factory=list)
    best_round: int = 0
    best_score: float = float("-inf")
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    tokens: int = 0
    samples: int = 0
    train_seconds: float = 0.0
    dev_seconds: float = 0.0
    resumed_after: list[int] = field(default_factory=list)
    """The epochs after which it was interrupted and went on."""


def train(
    model: FamilyModel,
    tasks: Mapping[str, Task],
    train_splits: Splits,
    dev_splits: Splits,
    training: Training,
    seed: int,
    setup: Setup,
    progress: Progress,
    snapshots: Snapshots | None = None,
) -> Trained:
    """Train on the tasks of ``train_splits``, choose the best epoch on those of ``dev_splits``.

    With ``snapshots`` it goes on from the last epoch that was kept there, if there is one.

    Raises:
        TrainingError: a loss is not a finite number.
        MemoryShortageError: not even one instance at a time fits into memory.
    """
    torch.manual_seed(seed)
    optimiser = torch.optim.Adam(model.module.parameters(), lr=training.learning_rate, fused=True)
    trained = _resumed(model, optimiser, snapshots) or Trained()
    if trained.rounds:
        progress.say(f"goes on after epoch {len(trained.rounds)}, where it was interrupted")
        units = sum(map(len, [*train_splits.values(), *dev_splits.values()]))
        progress.skip(len(trained.rounds) * units)
    for epoch in range(len(trained.rounds) + 1, training.epochs + 1):
        started = time.perf_counter()
        train_loss = _train_epoch(
            model, optimiser, train_splits, training, seed, epoch, setup, progress
        )
        ended = time.perf_counter()
        dev, score = _dev(model, tasks, dev_splits, training, setup, progress)
        done = time.perf_counter()
        trained.samples += sum(map(len, train_splits.values()))
        trained.train_seconds += ended - started
        trained.dev_seconds += done - ended
        trained.rounds.append(Round(epoch, train_loss, dev, score, done - started))
        if score > trained.best_score:
            trained.best_round, trained.best_score = epoch, score
            trained.best_weights = _copy_weights(model)
        progress.epoch(epoch, train_loss, score, trained.best_round)
        if snapshots is not None and epoch < training.epochs:
            snapshots.keep(partial(_state, model, optimiser, trained))
    trained.tokens = training.epochs * sum(len(s.sequences.values) for s in train_splits.values())
    return trained


def _train_epoch(
    model: FamilyModel,
    optimiser: torch.optim.Optimizer,
    train_splits: Splits,
    training: Training,
    seed: int,
    epoch: int,
    setup: Setup,
    progress: Progress,
) -> dict[str, float]:
    """Every batch of every task once, one update each; the mean loss per task."""
    sizes = {name: len(split) for name, split in train_splits.items()}
    weights = task_weights(sizes, training.batch_size, training.task_weighting)
    model.module.train()
    losses: list[tuple[str, Tensor]] = []
    for batch in epoch_batches(sizes, training.batch_size, seed, epoch):
        split = train_splits[batch.task]

        def gradients(tokens: int, batch: Batch = batch, split: EncodedSplit = split) -> Tensor:
            portions = model.training_portions(split, batch.units, tokens)
            return _add_gradients(model, split, batch, portions, weights, setup)

        loss = setup.train_budget.fitting(gradients, undo=optimiser.zero_grad)
        losses.append((batch.task, loss))
        torch.nn.utils.clip_grad_norm_(model.module.parameters(), training.max_grad_norm)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        progress.advance(len(batch.units))
    return _mean_losses(losses, epoch)


def _add_gradients(
    model: FamilyModel,
    split: EncodedSplit,
    batch: Batch,
    portions: list[list[int]],
    weights: Mapping[str, float],
    setup: Setup,
) -> Tensor:
    """Set every weight's gradient to that of the batch's mean loss, summed over its portions.

    Returns:
        The batch's mean loss, unweighted, still on the device: nothing waits for it here.
    """
    divisor, weight = model.weight(split, batch.units), weights[batch.task]
    parameters = list(model.module.parameters())
    # A portion's dropout depends on its place in the batch, not on the thread that computes it.
    seeds = torch.randint(1 << 62, (len(portions),)).tolist()

    def of_share(share: Sequence[tuple[list[int], int]]) -> tuple[Tensor, Gradients]:
        total = torch.zeros((), device=setup.device)
        sums: Gradients = None
        with setup.one_update():
            for portion, seed in share:
                with setup.autocast(), dropout_drawn_from(seed):
                    loss = model.loss(split, portion) / divisor
                found = torch.autograd.grad(loss * weight, parameters, allow_unused=True)
                sums = _sum(sums, found)
                total += loss.detach()
        return total, sums

    shares = setup.workers.shares(list(zip(portions, seeds, strict=True)))
    done = setup.workers.each(of_share, shares)
    gradients: Gradients = None
    for _, of_one in done:
        gradients = _sum(gradients, of_one)
    for parameter, gradient in zip(parameters, gradients or (), strict=True):
        parameter.grad = None if gradient is None else gradient.to_dense()
    return torch.stack([total for total, _ in done]).sum()


def _sum(first: Gradients, second: Gradients) -> Gradients:
    """Sum of two sets of gradients, in the place of the first; None where no loss depends on a
    weight."""
    if first is None or second is None:
        return second if first is None else first
    pairs = list(zip(first, second, strict=True))
    both = [(a, b) for a, b in pairs if a is not None and b is not None and not a.is_sparse]
    if both:
        torch._foreach_add_(*map(list, zip(*both, strict=True)))
    # A vocabulary's gradient may be sparse: rows with their numbers, which are put side by side.
    return tuple(
        b if a is None else a + b if a.is_sparse and b is not None else a for a, b in pairs
    )


# --- going on after a kill ----------------------------------------------------------------------


def _state(
    model: FamilyModel, optimiser: torch.optim.Optimizer, trained: Trained
) -> dict[str, Any]:
    """All that the next epoch depends on; the order of the data follows from seed and epoch."""
    history = asdict(replace(trained, best_weights={}))
    newest_is_best = trained.best_round == len(trained.rounds)
    return {
        "weights": model.module.state_dict(),
        "optimiser": optimiser.state_dict(),
        "random": random_state(),
        "history": history,
        "best_weights": None if newest_is_best else trained.best_weights,
    }


def _resumed(
    model: FamilyModel,
    optimiser: torch.optim.Optimizer,
    snapshots: Snapshots | None,
) -> Trained | None:
    """Put everything back to where an interrupted training was; None if there is none."""
    kept = snapshots.read() if snapshots is not None else None
    if kept is None:
        return None
    model.module.load_state_dict(kept["weights"])
    optimiser.load_state_dict(kept["optimiser"])
    restore_random_state(kept["random"])
    history = kept["history"]
    trained = Trained(**history | {"rounds": [Round(**one) for one in history["rounds"]]})
    trained.best_weights = kept["best_weights"] or _copy_weights(model)
    trained.resumed_after.append(len(trained.rounds))
    return trained


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
        evaluation = evaluate(model, tasks[name], split, setup, training.fidelity, progress.advance)
        measured[name] = evaluation.metrics
        scores.append(evaluation.score)
    return measured, float(np.mean(scores))


def _copy_weights(model: FamilyModel) -> dict[str, Tensor]:
    return {k: v.detach().cpu().clone() for k, v in model.module.state_dict().items()}
