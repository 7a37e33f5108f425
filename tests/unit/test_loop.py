"""The training loop: errors, kept rounds, and reproducibility."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from small_models import Loader, flatten_weights, small_setup, small_stage, train_quietly
from tasktransfer.core.specs import FAMILIES, Family, Sampler, Selection, Training
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encoded import EncodedSplit, Ragged
from tasktransfer.errors import ConfigError, TrainingError
from tasktransfer.metrics.measures import MEASURES
from tasktransfer.models.family import FamilyModel
from tasktransfer.training.ahead import UpdatePreparer, split_into_micro_batches
from tasktransfer.training.gradients import set_gradients
from tasktransfer.training.loop import Trained
from tasktransfer.training.samplers import Batch
from tasktransfer.training.selection import compute_dev_loss
from tasktransfer.training.setup import Setup

TASK = get_task("DailyDialog", "emotion_recognition")


TRAINING = Training(epochs=4, batch_size=2, learning_rate=1e-3)


def trained_on(
    model: FamilyModel,
    split: EncodedSplit,
    training: Training = TRAINING,
    setup: Setup | None = None,
    **stage: Any,
) -> Trained:
    """Train and select on one split.

    ``stage``: fields of the stage with other values than the defaults.
    """
    told = small_stage(TASK.name, training=training, **stage)
    return train_quietly(model, told, {TASK.name: split}, setup)


def test_equal_seeds_give_equal_weights_and_another_seed_does_not(load: Loader) -> None:
    made = []
    for seed in (0, 0, 1):
        model, split = load("encoder", "DailyDialog", TASK.name)
        history = trained_on(model, split, seed=seed)
        made.append((flatten_weights(model), [one.train_loss for one in history.rounds]))
    assert torch.equal(made[0][0], made[1][0])
    assert made[0][1] == made[1][1]
    assert not torch.equal(made[0][0], made[2][0])


def test_the_best_weights_are_those_of_the_best_round(load: Loader) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name)
    history = trained_on(model, split, replace(TRAINING, epochs=12))
    model.module.load_state_dict(history.best[0].weights)
    again = trained_on(model, split, replace(TRAINING, epochs=1, learning_rate=1e-12))
    assert again.best[0].score == history.best[0].score == max(history.best[0].scores)


def test_gradients_are_clipped_to_the_norm_asked_for(load: Loader) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name)
    before = flatten_weights(model)
    # Adam scales steps by the gradient's own size, except where its epsilon (1e-8) outweighs it.
    trained_on(model, split, replace(TRAINING, epochs=1, max_grad_norm=1e-12))
    assert (flatten_weights(model) - before).abs().max() < 0.01 * TRAINING.learning_rate


class Poisoned:
    """A model whose loss becomes NaN at one of its micro-batches."""

    def __init__(self, model: FamilyModel, at: int = 3) -> None:
        self._model, self._at, self._calls = model, at, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def compute_loss(self, split: EncodedSplit, examples: list[int]) -> Tensor:
        self._calls += 1
        value = self._model.compute_loss(split, examples)
        return value * float("nan") if self._calls == self._at else value


def test_a_loss_that_is_nan_stops_with_task_round_update_and_remedy(load: Loader) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name)
    words = r"emotion_recognition became nan in round 1, update \d.*learning_rate"
    with pytest.raises(TrainingError, match=words):
        trained_on(Poisoned(model), split, setup=small_setup(1))


# --- rounds and what selects them ---------------------------------------------------------------


def test_a_round_may_be_any_number_of_updates_and_changes_no_weight(load: Loader) -> None:
    made = []
    for every in (None, 1, 3):
        model, split = load("encoder", "DailyDialog", TASK.name)
        selection = Selection((TASK.name,), every=every)
        history = trained_on(model, split, selection=selection)
        made.append(flatten_weights(model))
        updates = TRAINING.epochs * math.ceil(len(split) / TRAINING.batch_size)
        rounds = TRAINING.epochs if every is None else math.ceil(updates / every)
        assert [one.round for one in history.rounds] == list(range(1, rounds + 1))
        assert history.samples == TRAINING.epochs * len(split)
        assert history.tokens == TRAINING.epochs * len(split.sequences.values)
    assert torch.equal(made[0], made[1])
    assert torch.equal(made[0], made[2])


@pytest.mark.parametrize(
    ("family", "measure"),
    [
        *[(family, measure) for family in FAMILIES for measure in ("micro_f1", "loss")],
        ("encoder", "spearman"),
        ("decoder", "perplexity"),
        ("encoder_decoder", "perplexity"),
    ],
)
def test_the_best_round_is_that_of_the_named_measure(
    family: Family, measure: str, load: Loader
) -> None:
    model, split = load(family, "DailyDialog", TASK.name)
    selection = Selection((TASK.name,), measure)
    faster = replace(TRAINING, learning_rate=1e-2)
    history = trained_on(model, split, faster, family=family, selection=selection)
    values = [one.dev[TASK.name][measure] for one in history.rounds]
    assert values == history.best[0].scores
    assert len(set(values)) > 1 or measure in ("micro_f1", "spearman")
    best = (max if MEASURES[measure].higher_is_better else min)(values)
    assert (history.best[0].score, history.best[0].round) == (best, 1 + values.index(best))
    if measure == "perplexity":
        losses = [one.dev[TASK.name]["loss"] for one in history.rounds]
        assert values == pytest.approx([math.exp(loss) for loss in losses])


def test_the_dev_loss_is_the_mean_without_dropout_in_micro_batches_of_any_size(
    load: Loader,
) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name)
    model.module.eval()
    plain = float(model.compute_loss(split, range(len(split))).detach()) / len(split)
    for tokens in (1, 100_000):
        assert compute_dev_loss(model, split, small_setup(tokens)) == pytest.approx(plain, rel=1e-5)


@pytest.mark.parametrize("measure", ["perplexity", "exact_match", "nonsense"])
def test_a_measure_that_the_task_has_not_is_refused_with_those_that_it_has(
    measure: str, load: Loader
) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name)
    words = rf"selection.measure: The measure '{measure}'.*score, .*loss"
    with pytest.raises(ConfigError, match=words):
        trained_on(model, split, selection=Selection((TASK.name,), measure))


def test_a_dev_loss_that_is_nan_stops_the_training(load: Loader) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name)
    with pytest.raises(TrainingError, match=r"dev loss of emotion_recognition became nan"):
        one_batch = replace(TRAINING, batch_size=len(split), epochs=1)
        poisoned = Poisoned(model, at=2)  # one update, then dev
        trained_on(poisoned, split, one_batch, small_setup(100_000), selection=BY_LOSS)


BY_LOSS = Selection((TASK.name,), "loss")


def test_patience_ends_the_training_after_so_many_rounds_without_a_better_one(
    load: Loader,
) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name)
    still = replace(TRAINING, learning_rate=1e-12, epochs=9)
    history = trained_on(model, split, still, selection=Selection((TASK.name,), patience=3))
    assert (len(history.rounds), history.best[0].round) == (4, 1)
    model, split = load("encoder", "DailyDialog", TASK.name)
    improving = replace(BY_LOSS, patience=1)
    history = trained_on(model, split, replace(TRAINING, epochs=3), selection=improving)
    assert (len(history.rounds), history.best[0].round) == (3, 3)


# --- updates of several tasks -------------------------------------------------------------------

NLI = get_task("DailyDialog", "dialogue_nli")


def two_tasks(load: Loader) -> tuple[FamilyModel, dict[str, EncodedSplit]]:
    """Return a model with two heads, and two tasks on the same instances."""
    model, split = load("encoder", "DailyDialog", TASK.name, others=(NLI.name,))
    labels = Ragged(split.labels.values % NLI.classes, split.labels.starts)
    return model, {TASK.name: split, NLI.name: replace(split, task=NLI.name, labels=labels)}


def test_an_update_of_several_tasks_is_one_step_on_the_mean_of_their_losses(load: Loader) -> None:
    model, splits = two_tasks(load)
    means = {name: model.compute_loss(s, range(len(s))) / len(s) for name, s in splits.items()}
    (torch.stack(list(means.values())).sum() / 2).backward()  # type: ignore[no-untyped-call]
    wanted = {
        n: p.grad.to_dense() for n, p in model.module.named_parameters() if p.grad is not None
    }
    model.module.zero_grad()
    batches = tuple(Batch(name, tuple(range(len(s))), 0.5) for name, s in splits.items())
    moving = list(model.module.parameters())
    made = split_into_micro_batches(model, splits, batches, 64)
    losses = set_gradients(model, moving, splits, batches, made, small_setup())
    assert torch.allclose(torch.stack(losses), torch.stack(list(means.values())), rtol=1e-5)
    gradients = {n: p.grad for n, p in model.module.named_parameters() if p.grad is not None}
    assert gradients.keys() == wanted.keys()
    for name, gradient in gradients.items():
        assert torch.allclose(gradient, wanted[name], rtol=1e-4, atol=1e-7), name


@pytest.mark.parametrize("portions", [(8, 8), (15, 1)])
def test_the_gradient_is_the_mean_over_instances_side_by_side_or_not(
    load: Loader, portions: tuple[int, int]
) -> None:
    """For any micro-batches, and whether or not two tasks' micro-batches run in parallel."""
    tasks = (TASK.name, NLI.name)
    model, _ = load("encoder", "DailyDialog", tasks[0], others=tasks[1:], adapter_reduction=4)
    splits = {t: load("encoder", "DailyDialog", t)[1] for t in tasks}
    model.module.eval()
    update = tuple(
        Batch(task, tuple(i % len(splits[task]) for i in range(n)), n / sum(portions))
        for task, n in zip(tasks, portions, strict=True)
    )
    moving = [*model.module.parameters()]

    def gradients(workers: int, tokens: int) -> list[torch.Tensor]:
        setup = small_setup(tokens, tokens, workers=workers)
        with UpdatePreparer(model, splits, [update], setup.device) as ahead:
            set_gradients(model, moving, splits, update, ahead.get_update(0, tokens), setup)
        return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in moving]

    wanted = [torch.zeros_like(p) for p in moving]
    for batch in update:
        for example in batch.examples:
            loss = model.compute_loss(splits[batch.task], [example]) / sum(portions)
            for total, g in zip(
                wanted, torch.autograd.grad(loss, moving, allow_unused=True), strict=True
            ):
                if g is not None:
                    total.add_(g.to_dense())
    for workers, tokens in ((1, 4096), (2, 4096), (2, 64)):
        for found, right in zip(gradients(workers, tokens), wanted, strict=True):
            assert np.allclose(found, right, atol=1e-5)


@pytest.mark.parametrize("sampler", ["uniform", "together"])
def test_several_tasks_are_trained_by_any_sampler(sampler: Sampler, load: Loader) -> None:
    model, splits = two_tasks(load)
    stage = small_stage(TASK.name, NLI.name, training=TRAINING, sampler=sampler)
    history = train_quietly(model, stage, splits)
    assert {*history.rounds[-1].train_loss} == {*splits}
    passes = 2 * TRAINING.epochs
    assert history.samples == passes * len(splits[TASK.name]) or sampler == "uniform"


# --- trained parts ------------------------------------------------------------------------------


def test_parts_that_are_not_trained_keep_every_byte(load: Loader) -> None:
    model, splits = two_tasks(load)
    before = {name: p.detach().clone() for name, p in model.module.named_parameters()}
    trains = (f"head.{TASK.name}",)
    stage = small_stage(TASK.name, NLI.name, training=TRAINING, trains=trains)
    train_quietly(model, stage, splits)
    moved = {n for n, p in model.module.named_parameters() if not torch.equal(p, before[n])}
    assert moved == {f"heads.{TASK.name}.{name}" for name in ("weight", "bias")}
    frozen = [p for n, p in model.module.named_parameters() if n not in moved]
    assert not any(p.requires_grad or p.grad is not None for p in frozen)


@pytest.mark.parametrize(
    ("family", "part"),
    [("encoder", "encoder"), ("decoder", "body"), ("encoder_decoder", "decoder")],
)
def test_a_part_of_any_family_moves_alone(family: Family, part: str, load: Loader) -> None:
    model, split = load(family, "DailyDialog", TASK.name)
    before = {name: p.detach().clone() for name, p in model.module.named_parameters()}
    wanted = {id(p) for p in model.get_parts()[part].values()}
    trained_on(model, split, replace(TRAINING, epochs=1), trains=(part,), family=family)
    moved = {id(p) for n, p in model.module.named_parameters() if not torch.equal(p, before[n])}
    assert moved
    assert moved <= wanted


def test_an_unknown_part_is_named_with_those_that_exist(load: Loader) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name)
    words = r"trains: The model has no part 'adapter'.*encoder, head.emotion_recognition"
    with pytest.raises(ConfigError, match=words):
        trained_on(model, split, trains=("adapter",))
