"""Initialisation of new task heads by logistic regression on the encoder's states.

With a random head, the first updates of fine-tuning distort the pretrained states, and a model that
is trained on a few hundred instances may not recover. Fitting the head first reduces this (Kumar et
al. 2022, "Fine-Tuning can Distort Pretrained Features and Underperform Out-of-Distribution").
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.models.encoder import Encoder
from tasktransfer.models.encoder_inputs import get_labels
from tasktransfer.models.heads import Head, compute_label_loss
from tasktransfer.tasks.card import Task

MAX_STEPS = 300
"""Maximum number of L-BFGS iterations."""


def fit_heads(
    model: Encoder, tasks: Mapping[str, Task], splits: Mapping[str, EncodedSplit], tokens: int
) -> None:
    """Fit the heads of tasks by logistic regression on training splits, in place.

    Biases are not regularised.

    Args:
        tasks: result of ``initial_heads.select_fitted_tasks``.
        splits: training splits by task.
        tokens: tokens per micro-batch.
    """
    for name, task in tasks.items():
        split = splits[name]
        labels = torch.from_numpy(get_labels(split, range(len(split))))
        head = model.heads[name]
        assert isinstance(head, Head)
        weight, bias = fit_logistic_regression(task, _read_states(model, split, tokens), labels)
        with torch.no_grad():
            head.weight.copy_(weight)
            head.bias.copy_(bias)


def fit_logistic_regression(task: Task, states: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Fit a head's weights and biases to minimise the task's loss with an L2 penalty.

    A multi-label task has one regression per label, a multi-output task one per output. The penalty
    is scikit-learn's default, C = 1, for states that are scaled to a mean squared norm of 1. With a
    weaker penalty, the head separates a few hundred instances almost perfectly, and fine-tuning has
    nearly no loss from which the encoder can learn.

    Args:
        states: inputs of the head, shape (examples, width), float64.
        labels: see ``heads.compute_label_loss``.

    Returns:
        Weights of shape (head width, width) and biases of shape (head width,), float64.
    """
    regressions = {"multi_label": task.classes, "multi_output": len(task.outputs)}
    outputs = task.classes * max(1, len(task.outputs))
    weight = torch.zeros(outputs, states.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(outputs, dtype=torch.float64, requires_grad=True)
    norm = states.square().sum(1).mean().sqrt()
    scaled = states / norm
    optimiser = torch.optim.LBFGS(
        [weight, bias], max_iter=MAX_STEPS, tolerance_grad=1e-4, line_search_fn="strong_wolfe"
    )

    def compute_objective() -> Tensor:
        optimiser.zero_grad()
        loss = compute_label_loss(task, scaled @ weight.T + bias, labels)
        # The loss of a task is a mean over its regressions.
        objective = regressions.get(task.kind, 1) * loss + weight.square().sum() / 2
        objective.backward()  # type: ignore[no-untyped-call]
        return objective

    optimiser.step(compute_objective)  # type: ignore[no-untyped-call]
    return weight.detach() / norm, bias.detach()


def _read_states(model: Encoder, split: EncodedSplit, tokens: int) -> Tensor:
    """Compute the head's inputs for every example, shape (examples, width), float64, on the CPU."""
    model.module.eval()
    states: dict[int, Tensor] = {}
    with torch.no_grad():
        for examples in model.split_for_prediction(split, range(len(split)), tokens):
            batch = model.compute_head_inputs(split, examples).double().cpu()
            states |= dict(zip(examples, batch, strict=True))
    return torch.stack([states[example] for example in range(len(split))])
