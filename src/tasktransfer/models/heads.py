"""The heads on an encoder's outputs: width, initialisation, losses and predictions."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from tasktransfer.encoding.encoded import IGNORED_LABEL
from tasktransfer.layers.ragged import Ints
from tasktransfer.tasks.card import Task

MULTI_LABEL_THRESHOLD = 0.5
TLIDB_MULTI_LABEL_THRESHOLD = 0.1
"""Softmax probability above which the toolkit predicts a label (feta-spec, quirks)."""


class Head(nn.Linear):
    """A linear layer that computes in float32, even if the encoder computes in bfloat16.

    In bfloat16, close logits are often rounded to ties (docs/decisions/0024-logits-in-float32.md).
    """

    def forward(self, states: Tensor) -> Tensor:  # torch names it input
        with torch.autocast(states.device.type, enabled=False):
            return functional.linear(states.to(self.weight.dtype), self.weight, self.bias)


def get_head_width(task: Task) -> int:
    """Return the number of outputs of a task's head."""
    match task.kind:
        case "span":
            return 2
        case "multiple_choice" | "rating":
            return 1
        case "multi_output":
            return len(task.outputs) * task.classes
        case _:
            return task.classes


def has_unanswerable(task: Task) -> bool:
    """Return whether the task's metrics support unanswerable instances."""
    return any(metric.unanswerable_phrases for metric in task.metrics)


def create_head(hidden: int, task: Task, seed: int, start: str) -> Head:
    """Create a head, whose initial weights depend on seed and task only."""
    head = Head(hidden, get_head_width(task))
    generator = torch.Generator().manual_seed(seed * 1_000_003 + sum(task.name.encode()))
    with torch.no_grad():
        if start == "xavier":
            nn.init.xavier_uniform_(head.weight, generator=generator)
            bound = 1 / math.sqrt(hidden)  # as torch starts the biases of a linear layer
            head.bias.uniform_(-bound, bound, generator=generator)
            return head
        head.weight.normal_(0.0, 0.02, generator=generator)
        # Only a few of many labels are correct. If every sigmoid started at one half, the first
        # steps would only lower all of them, and damage the encoder, which may not recover.
        head.bias.fill_(-math.log(task.classes - 1) if task.kind == "multi_label" else 0.0)
    return head


def compute_span_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """Compute the cross-entropy, summed over rows whose input contains the answer.

    The loss is 0 if no row does.
    """
    return functional.cross_entropy(scores, labels, ignore_index=IGNORED_LABEL, reduction="sum")


def compute_label_loss(task: Task, logits: Tensor, labels: Tensor) -> Tensor:
    """Compute the loss of a task with fixed labels, summed over examples.

    Args:
        logits: shape (examples, head width).
        labels: indices of the classes, shape (examples, answers), int64. In a multi-label task, 1
            for correct labels and 0 for others, shape (examples, labels).
    """
    match task.kind:
        case "multi_label":
            each = functional.binary_cross_entropy_with_logits(
                logits, labels.to(logits.dtype), reduction="none"
            )
            return each.mean(dim=-1).sum()
        case "multi_output":
            flat = logits.view(-1, task.classes)
            total = functional.cross_entropy(flat, labels.view(-1), reduction="sum")
            return total / len(task.outputs)
        case _:
            return functional.cross_entropy(logits, labels[:, 0], reduction="sum")


def compute_rating_loss(task: Task, logits: Tensor, shares: Tensor) -> Tensor:
    """Compute the loss of ratings, summed over examples.

    Args:
        shares: gold ratings from 0 to 1, (examples,).
    """
    if task.loss == "squared_error":
        return functional.mse_loss(torch.sigmoid(logits), shares, reduction="sum")
    return functional.binary_cross_entropy_with_logits(logits, shares, reduction="sum")


def select_labels(task: Task, logits: Tensor, multi_label: str) -> tuple[str, ...]:
    """Select the labels above the threshold, or the most probable label without any.

    In the toolkit's multi-label task, every pair of speakers has at least one relation.
    """
    if multi_label == "softmax":
        chosen = torch.softmax(logits, -1) > TLIDB_MULTI_LABEL_THRESHOLD
    else:
        chosen = torch.sigmoid(logits) > MULTI_LABEL_THRESHOLD
    if not bool(chosen.any()):
        chosen[int(logits.argmax())] = True
    return tuple(label for label, yes in zip(task.labels, chosen.tolist(), strict=True) if yes)


def find_best_spans(logits: Tensor, allowed: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """Find the first and last token of the span with the highest score (start + end).

    Spans of more than ``longest`` tokens, with tokens outside of the context, or that mix the "no
    answer" token with others are excluded. Both have the shape (examples,).
    """
    start = logits[..., 0].masked_fill(~allowed, float("-inf"))
    end = logits[..., 1].masked_fill(~allowed, float("-inf"))
    width = logits.shape[1]
    index = torch.arange(width, device=logits.device)
    length = index[None, :] - index[:, None]
    fits = (length >= 0) & (length < longest)
    fits[0, 1:] = False  # "no answer" is a separate span
    pairs = (start[:, :, None] + end[:, None, :]).masked_fill(~fits, float("-inf"))
    best = pairs.flatten(1).argmax(-1)
    return best // width, best % width


def find_text_edges(edges: Ints, first: int, last: int) -> tuple[int, int]:
    """Return the character offsets (begin, end) of the tokens ``first`` to ``last``.

    Special tokens and padding at either end have no text. (-1, -1) if no token has text.
    """
    text = [
        (int(edges[2 * i]), int(edges[2 * i + 1]))
        for i in range(first, min(last + 1, len(edges) // 2))
        if edges[2 * i] >= 0
    ]
    return (text[0][0], text[-1][1]) if text else (-1, -1)
