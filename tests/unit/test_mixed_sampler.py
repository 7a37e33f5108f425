"""The sampler of each instance's task: fractions, seeds, and the gradient of an update."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from small_models import Loader
from tasktransfer.core.specs import Training
from tasktransfer.training.ahead import UpdatePreparer
from tasktransfer.training.gradients import set_gradients
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.samplers import Batch, mix_tasks
from tasktransfer.training.setup import Setup
from tasktransfer.training.workers import Workers

SIZES = {"large": 3000, "middle": 300, "small": 32}
TRAINING = Training(batch_size=32)


def test_every_tasks_share_is_within_its_sampling_error() -> None:
    updates = mix_tasks(SIZES, TRAINING, seed=0, epoch=1)
    counts = Counter(dict.fromkeys(SIZES, 0))
    for update in updates:
        counts.update({batch.task: len(batch.examples) for batch in update})
        assert sum(len(batch.examples) for batch in update) == 32
        assert sum(batch.weight for batch in update) == pytest.approx(1)
    total = 32 * len(updates)
    error = (total * (1 / 3) * (2 / 3)) ** 0.5
    assert all(abs(count - total / 3) < 4 * error for count in counts.values())


def test_no_instance_comes_twice_before_all_did() -> None:
    drawn = [
        e
        for u in mix_tasks(SIZES, TRAINING, 0, 1)
        for b in u
        if b.task == "small"
        for e in b.examples
    ]
    for begin in range(0, len(drawn) - 31, 32):
        assert sorted(drawn[begin : begin + 32]) == [*range(32)]


def test_seeds_and_epochs_repeat_and_differ() -> None:
    one = mix_tasks(SIZES, TRAINING, 0, 1)
    assert one == mix_tasks(SIZES, TRAINING, 0, 1)
    assert one != mix_tasks(SIZES, TRAINING, 1, 1)
    assert one != mix_tasks(SIZES, TRAINING, 0, 2)


@pytest.mark.parametrize("portions", [(8, 8), (15, 1)])
def test_the_gradient_is_the_mean_over_instances_side_by_side_or_not(
    load: Loader, portions: tuple[int, int]
) -> None:
    """For any micro-batches, and whether or not two tasks' micro-batches run in parallel."""
    tasks = ("emotion_recognition", "dialogue_nli")
    model, _ = load("encoder", "DailyDialog", tasks[0], others=tasks[1:], adapter_reduction=4)
    splits = {t: load("encoder", "DailyDialog", t)[1] for t in tasks}
    model.module.eval()
    update = tuple(
        Batch(task, tuple(i % len(splits[task]) for i in range(n)), n / sum(portions))
        for task, n in zip(tasks, portions, strict=True)
    )
    moving = [*model.module.parameters()]

    def gradients(workers: int, tokens: int) -> list[torch.Tensor]:
        budgets = TokenBudget(tokens, "training"), TokenBudget(tokens, "evaluation")
        setup = Setup(torch.device("cpu"), *budgets, "float32", Workers(workers))
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
