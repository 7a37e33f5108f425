"""The one training loop: what it refuses, what it keeps, and that it repeats itself."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from small_models import Loader
from tasktransfer.core.specs import Training
from tasktransfer.datasets import get_task
from tasktransfer.errors import TrainingError
from tasktransfer.models.encoded import EncodedSplit
from tasktransfer.models.family import FamilyModel
from tasktransfer.training.loop import Trained, train
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.progress import Progress
from tasktransfer.training.setup import Setup

TASK = get_task("DailyDialog", "emotion_recognition")


def setup_with(tokens: int) -> Setup:
    budgets = TokenBudget(tokens, "training"), TokenBudget(256, "evaluation")
    return Setup(torch.device("cpu"), *budgets)


SETUP = setup_with(256)
TRAINING = Training(epochs=4, batch_size=2, learning_rate=1e-3)


def trained_on(
    model: FamilyModel,
    split: EncodedSplit,
    training: Training = TRAINING,
    setup: Setup = SETUP,
    seed: int = 0,
) -> Trained:
    progress = Progress(1, "test", io.StringIO())
    splits = {TASK.name: split}
    return train(model, {TASK.name: TASK}, splits, splits, training, seed, setup, progress)


def weights(model: FamilyModel) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.module.parameters()])


def test_equal_seeds_give_equal_weights_and_another_seed_does_not(load: Loader) -> None:
    made = []
    for seed in (0, 0, 1):
        model, split = load("encoder", "DailyDialog", TASK.name)
        history = trained_on(model, split, seed=seed)
        made.append((weights(model), [e.train_loss for e in history.epochs]))
    assert torch.equal(made[0][0], made[1][0])
    assert made[0][1] == made[1][1]
    assert not torch.equal(made[0][0], made[2][0])


def test_the_size_of_micro_batches_changes_nothing_but_rounding(load: Loader) -> None:
    made = []
    for tokens in (1, 100_000):
        model, split = load("encoder", "DailyDialog", TASK.name)
        trained_on(model, split, setup=setup_with(tokens))
        made.append(weights(model))
    assert (made[0] - made[1]).norm() / made[0].norm() < 1e-5


def test_the_first_of_equally_good_epochs_is_kept(load: Loader) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name)
    still = replace(TRAINING, learning_rate=1e-12)  # no prediction changes: every epoch ties
    history = trained_on(model, split, still)
    assert len({epoch.selection_score for epoch in history.epochs}) == 1
    assert history.best_epoch == 1


def test_the_best_weights_are_those_of_the_best_epoch(load: Loader) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name)
    history = trained_on(model, split, replace(TRAINING, epochs=12))
    model.module.load_state_dict(history.best_weights)
    again = trained_on(model, split, replace(TRAINING, epochs=1, learning_rate=1e-12))
    assert again.best_score == history.best_score == max(e.selection_score for e in history.epochs)


def test_gradients_are_clipped_to_the_norm_asked_for(load: Loader) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name)
    before = weights(model)
    # Adam scales steps by the gradient's own size, except where its epsilon (1e-8) outweighs it.
    trained_on(model, split, replace(TRAINING, epochs=1, max_grad_norm=1e-12))
    assert (weights(model) - before).abs().max() < 0.01 * TRAINING.learning_rate


class Poisoned:
    """A model whose loss stops being a number at the third micro-batch."""

    def __init__(self, model: FamilyModel) -> None:
        self._model = model
        self.module = model.module
        self.weight = model.weight
        self.side_by_side, self.paths = model.side_by_side, model.paths
        self.training_micro_batches = model.training_micro_batches
        self.prediction_micro_batches = model.prediction_micro_batches
        self.predict = model.predict
        self.save = model.save
        self._calls = 0

    def loss(self, split: EncodedSplit, examples: list[int]) -> Tensor:
        self._calls += 1
        value = self._model.loss(split, examples)
        return value * float("nan") if self._calls == 3 else value


def test_a_loss_that_is_no_number_stops_with_task_epoch_update_and_remedy(load: Loader) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name)
    with pytest.raises(
        TrainingError, match=r"emotion_recognition became nan in epoch 1, update \d.*learning_rate"
    ):
        trained_on(Poisoned(model), split, setup=setup_with(1))
