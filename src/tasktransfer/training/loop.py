"""The training loop, which all algorithms of a study use. Read it from top to bottom.

Paper, Appendix B: Adam without weight decay, constant learning rate, gradient clipping by norm, dev
metrics after every epoch, the first best epoch is kept. A stage may set another learning rate
schedule, a budget in updates, another selection measure and early stopping. It may train only some
parts of the model.

A round is the interval between two evaluations on the dev sets: an epoch by default, or a fixed
number of updates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tasktransfer.core.bandits import Bandit
from tasktransfer.core.nodes import Stage
from tasktransfer.core.specs import Selection
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.errors import TrainingError
from tasktransfer.metrics.measures import Measure
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.parts import (
    Tensors,
    copy_trained_state,
    freeze_other_parts,
    load_trained_state,
)
from tasktransfer.tasks.card import Task
from tasktransfer.tasks.initial_heads import select_fitted_tasks
from tasktransfer.training.ahead import UpdatePreparer
from tasktransfer.training.gradients import set_gradients, set_pair_gradients
from tasktransfer.training.half_weights import HalfWeights
from tasktransfer.training.optimisers import create_optimiser
from tasktransfer.training.progress import Progress
from tasktransfer.training.resume import (
    Snapshots,
    TrainingState,
    get_random_state,
    restore_random_state,
)
from tasktransfer.training.samplers import Schedule, Update
from tasktransfer.training.schedules import Scheduler, create_scheduler
from tasktransfer.training.selection import (
    DevMeasures,
    compute_dev_measures,
    compute_selection_score,
    get_selecting_measure,
)
from tasktransfer.training.setup import Setup
from tasktransfer.training.tracking import OnRound

Splits = Mapping[str, EncodedSplit]
KeepRound = Callable[[int], None]
"""Function that saves the model's parameters under a round's number."""


@dataclass(frozen=True, slots=True)
class Round:
    """The results of one round of training.

    Attributes:
        train_loss: task → mean loss over its updates; empty in round 0, the untrained model.
        dev: dev measures after the round.
        mixing: source → its mean sampling probability, if the sampler learns it.
    """

    round: int
    train_loss: dict[str, float]
    dev: DevMeasures
    seconds: float
    mixing: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Best:
    """The best round by one selection, with its trained weights (on the CPU) and all scores."""

    selection: Selection
    score: float
    round: int = 0
    weights: Tensors = field(default_factory=dict)
    scores: list[float] = field(default_factory=list)

    def is_settled(self, last: int) -> bool:
        """Return whether the patience is exhausted after round ``last``."""
        patience = self.selection.patience
        return patience is not None and last - self.round >= patience


@dataclass(slots=True)
class Trained:
    """The history of a training, and its best round by each of its selections."""

    best: list[Best]
    rounds: list[Round] = field(default_factory=list)
    tokens: int = 0
    samples: int = 0
    train_seconds: float = 0.0
    dev_seconds: float = 0.0
    resumed_after: list[int] = field(default_factory=list)
    """Rounds after which the training was interrupted and later resumed."""
    bandit: Bandit | None = None
    """State of the sampler, if it learns."""

    @property
    def last(self) -> int:
        """Number of the last round, or 0 before the first round."""
        return self.rounds[-1].round if self.rounds else 0

    @property
    def is_settled(self) -> bool:
        """True if the patience is exhausted for every selection."""
        return all(best.is_settled(self.last) for best in self.best)


def train(
    model: FamilyModel,
    stage: Stage,
    tasks: Mapping[str, Task],
    train_splits: Splits,
    dev_splits: Splits,
    setup: Setup,
    progress: Progress,
    snapshots: Snapshots | None = None,
    keep_round: KeepRound | None = None,
    on_round: OnRound | None = None,
) -> Trained:
    """Train a model on ``train_splits``, and select the best round on ``dev_splits``.

    If the stage has several selections, they are independent: each stops when its own patience is
    exhausted, and the training stops with the last of them. If the heads are fitted, the
    model before the first update is evaluated as round 0. It can be selected as the best round with
    ``head_initialization: logistic_regression``, but not with ``auto``, because a source would then
    pass on an encoder that pre-training has not changed.

    Args:
        snapshots: storage of the training's state, from which an interrupted training resumes.
        keep_round: called after every round, and first with 0 for the untrained model, whose dev
            measures are then recorded.
        on_round: called after every round except 0.

    Raises:
        ConfigError: the stage trains parts that the model does not have, or is selected by a
            measure that its tasks do not have.
        DataError: the stage's sampler cannot be used on these splits.
        TrainingError: a loss is not a finite number.
        MemoryShortageError: not even one instance at a time fits into memory.
    """
    torch.manual_seed(stage.seed)
    measure = get_selecting_measure(stage, tasks)
    schedule = Schedule.build(stage, train_splits)
    has_fitted_heads = _has_fitted_heads(stage, tasks)
    moving = freeze_other_parts(model, stage.trains)
    optimiser = create_optimiser(model.module, moving, stage.training)
    scheduler = create_scheduler(optimiser, stage.training, schedule.updates)
    untrained = [Best(selection, measure.worst_value) for selection in stage.selections]
    fresh = Trained(untrained, bandit=Bandit.start(stage))
    trained = _restore_state(model, optimiser, scheduler, snapshots, fresh) or fresh
    if trained.rounds:
        progress.print_message(f"The training resumes after round {trained.last}.")
        progress.skip_instances(
            trained.samples + len(trained.rounds) * sum(map(len, dev_splits.values()))
        )
    elif keep_round is not None or has_fitted_heads:
        started = time.perf_counter()
        dev, values = compute_dev_measures(model, stage, tasks, dev_splits, setup, progress)
        trained.dev_seconds += time.perf_counter() - started
        trained.rounds.append(Round(0, {}, dev, time.perf_counter() - started))
        if has_fitted_heads and stage.training.head_initialization != "auto":
            _record_scores(trained.best, 0, values, measure, model)
        else:
            for best in trained.best:
                best.scores.append(compute_selection_score(values, best.selection))
        if keep_round is not None:
            keep_round(0)
    while trained.last < schedule.rounds and not trained.is_settled:
        number = trained.last + 1
        started = time.perf_counter()
        updates = list(schedule.iterate_round(number))
        splits = _sample_answers(train_splits, stage, number)
        train_loss, updates = _train_round(
            *(model, moving, optimiser, stage, splits, number, updates, setup, progress),
            trained.bandit,
            scheduler,
        )
        mixing = trained.bandit.pop_weights() if trained.bandit else {}
        ended = time.perf_counter()
        dev, values = compute_dev_measures(model, stage, tasks, dev_splits, setup, progress)
        done = time.perf_counter()
        _count_samples(trained, updates, train_splits)
        trained.train_seconds += ended - started
        trained.dev_seconds += done - ended
        _record_scores(trained.best, number, values, measure, model)
        trained.rounds.append(Round(number, train_loss, dev, done - started, mixing))
        progress.report_round(
            number, train_loss, [(best.scores[-1], best.round) for best in trained.best]
        )
        if on_round is not None:
            scores = [best.scores[-1] for best in trained.best]
            on_round(number, train_loss, scores, optimiser.param_groups[0]["lr"])
        if keep_round is not None:
            keep_round(number)
        if snapshots is not None and number < schedule.rounds:
            snapshots.write_state(partial(_collect_state, model, optimiser, scheduler, trained))
    return trained


def _has_fitted_heads(stage: Stage, tasks: Mapping[str, Task]) -> bool:
    """Return whether the heads of all selecting tasks are fitted before the first update."""
    if stage.model.family != "encoder":
        return False
    fitted = select_fitted_tasks(tasks, stage.training.head_initialization)
    return all(name in fitted for name in stage.measured_on)


def _record_scores(
    selections: Sequence[Best],
    number: int,
    values: Mapping[str, Sequence[float]],
    measure: Measure,
    model: FamilyModel,
) -> None:
    """Add a round's score to each selection, and store its weights if it is the best so far.

    All selections that choose the round share one copy of the weights.
    """
    weights: Tensors = {}
    for best in selections:
        score, settled = (
            compute_selection_score(values, best.selection),
            best.is_settled(number - 1),
        )
        best.scores.append(score)
        if not settled and measure.is_better(score, than=best.score):
            weights = weights or copy_trained_state(model.module)
            best.round, best.score, best.weights = number, score, weights


def _train_round(
    model: FamilyModel,
    moving: Sequence[nn.Parameter],
    optimiser: torch.optim.Optimizer,
    stage: Stage,
    splits: Splits,
    number: int,
    updates: Sequence[Update],
    setup: Setup,
    progress: Progress,
    bandit: Bandit | None = None,
    scheduler: Scheduler | None = None,
) -> tuple[dict[str, float], list[Update]]:
    """Train for one round, with one optimiser step per update.

    Returns:
        The mean loss per task, and the updates as trained: complete, or the batches that ``bandit``
        selected.
    """
    model.enter_training_mode()
    losses: list[tuple[int, str, Tensor]] = []
    done: list[Update] = []
    together = setup.device.type == "cuda" and setup.precision == "bfloat16"
    # Gradient checkpointing recomputes layers outside of ``HalfWeights.compute_with_halves``.
    together = together and not stage.training.gradient_checkpointing
    halves = HalfWeights(model.module) if together else None
    with UpdatePreparer(model, splits, updates, setup.device) as ahead:
        for index, offered in enumerate(updates):
            wanted = bandit.choose_source() if bandit else [batch.task for batch in offered]
            taken = [one for one, batch in enumerate(offered) if batch.task in wanted]
            update = tuple(offered[one] for one in taken)
            turn = index, update, taken

            def gradients(tokens: int, turn: tuple[int, Update, list[int]] = turn) -> Any:
                index, update, taken = turn
                made = ahead.get_update(index, tokens)
                parts = [made[number] for number in taken]
                given = (model, moving, splits, update, parts, setup, halves)
                return set_pair_gradients(*given) if bandit else (set_gradients(*given), None)

            of_batches, alike = setup.train_budget.run_within_memory(
                gradients, undo=optimiser.zero_grad
            )
            if bandit:
                bandit.add_reward(wanted[1], float(alike))
            done.append(update)
            each = zip(update, of_batches, strict=True)
            losses += [(index + 1, batch.task, loss) for batch, loss in each]
            torch.nn.utils.clip_grad_norm_(moving, stage.training.max_grad_norm)
            optimiser.step()
            if scheduler is not None:
                scheduler.step()
            optimiser.zero_grad(set_to_none=True)
            progress.count_instances(sum(len(batch.examples) for batch in update))
    return _average_losses(losses, number), done


def _sample_answers(splits: Splits, stage: Stage, number: int) -> Splits:
    """Return the splits with newly sampled gold answers for a round.

    The splits are unchanged if the stage always uses the first answer.
    """
    if stage.training.fidelity.several_answers == "first":
        return splits
    return {task: split.sample_answers([stage.seed, number]) for task, split in splits.items()}


def _average_losses(losses: list[tuple[int, str, Tensor]], number: int) -> dict[str, float]:
    """Average the losses by task.

    Losses are copied to the host once per round, so that the device never waits for it.
    """
    values = torch.stack([loss for _, _, loss in losses]).tolist()
    by_task: dict[str, list[float]] = {}
    for (update, task, _), value in zip(losses, values, strict=True):
        if not np.isfinite(value):
            raise TrainingError(
                f"The loss of {task} became {value} in round {number}, update {update}, and "
                "nothing was written. Reduce training.learning_rate or set training.precision to "
                "float32."
            )
        by_task.setdefault(task, []).append(value)
    return {task: float(np.mean(v)) for task, v in sorted(by_task.items())}


def _count_samples(trained: Trained, updates: Sequence[Update], splits: Splits) -> None:
    """Add the tokens and samples of a round to the totals."""
    tokens = {task: split.count_tokens() for task, split in splits.items()}
    for batch in (batch for update in updates for batch in update):
        trained.samples += len(batch.examples)
        trained.tokens += int(tokens[batch.task][list(batch.examples)].sum())


# --- resuming after a kill ----------------------------------------------------------------------


def _collect_state(
    model: FamilyModel,
    optimiser: torch.optim.Optimizer,
    scheduler: Scheduler | None,
    trained: Trained,
) -> TrainingState:
    """Return the state after a round, from which the training can resume."""
    bare = [replace(best, weights={}) for best in trained.best]
    # Weights of the last round, or shared by several selections, are written once.
    rounds = {best.round: best.weights for best in trained.best if best.round != trained.last}
    state: TrainingState = {
        "weights": copy_trained_state(model.module),
        "optimiser": optimiser.state_dict(),
        "random": get_random_state(),
        "history": asdict(replace(trained, best=bare)),
        "best_weights": rounds,
    }
    if scheduler is not None:
        state["scheduler"] = scheduler.state_dict()
    return state


def _restore_state(
    model: FamilyModel,
    optimiser: torch.optim.Optimizer,
    scheduler: Scheduler | None,
    snapshots: Snapshots | None,
    fresh: Trained,
) -> Trained | None:
    """Restore the state of an interrupted training, and return its history.

    Return None if there is no usable state.
    """
    kept = snapshots.read_state() if snapshots is not None else None
    if kept is None:
        return None
    load_trained_state(model.module, kept["weights"])
    optimiser.load_state_dict(kept["optimiser"])
    if scheduler is not None:
        scheduler.load_state_dict(kept["scheduler"])
    restore_random_state(kept["random"])
    history, newest = kept["history"], copy_trained_state(model.module)
    rounds = [Round(**entry) for entry in history["rounds"]]
    best = [
        Best(
            entry.selection,
            saved["score"],
            saved["round"],
            kept["best_weights"].get(saved["round"], newest),
            saved["scores"],
        )
        for entry, saved in zip(fresh.best, history["best"], strict=True)
    ]
    bandit = Bandit(**history["bandit"]) if fresh.bandit else None
    trained = Trained(**history | {"rounds": rounds, "best": best, "bandit": bandit})
    trained.resumed_after.append(trained.last)
    return trained
