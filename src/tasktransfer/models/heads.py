"""The heads on an encoder's outputs: their width and start, their losses, and what they answer."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from tasktransfer.encoding.encoded import IGNORED
from tasktransfer.tasks.card import Task

MULTI_LABEL_THRESHOLD = 0.5
TLIDB_MULTI_LABEL_THRESHOLD = 0.1
"""The toolkit takes the labels whose softmax exceeds this (feta-spec, quirks)."""


class Head(nn.Linear):
    """A linear layer that computes in the format of its weights, float32, whatever the encoder
    under it computed in: rounded to bfloat16, two logits next to each other are often equal
    (docs/decisions/0024-logits-in-float32.md)."""

    def forward(self, states: Tensor) -> Tensor:  # torch names it input
        with torch.autocast(states.device.type, enabled=False):
            return functional.linear(states.to(self.weight.dtype), self.weight, self.bias)


def head_width(task: Task) -> int:
    """Number of outputs of a task's head."""
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
    """Whether the task's metrics know unanswerable instances."""
    return any(metric.unanswerable_phrases for metric in task.metrics)


def fresh_head(hidden: int, task: Task, seed: int, start: str) -> Head:
    """A head whose start depends on seed and task only, not on which other heads are made."""
    head = Head(hidden, head_width(task))
    generator = torch.Generator().manual_seed(seed * 1_000_003 + sum(task.name.encode()))
    with torch.no_grad():
        if start == "xavier":
            nn.init.xavier_uniform_(head.weight, generator=generator)
            bound = 1 / math.sqrt(hidden)  # as torch starts the biases of a linear layer
            head.bias.uniform_(-bound, bound, generator=generator)
            return head
        head.weight.normal_(0.0, 0.02, generator=generator)
        # Of many labels few are right. Starting every sigmoid at one half, the first steps would
        # do nothing but push all of them down, through the encoder too, which may not recover.
        head.bias.fill_(-math.log(task.classes - 1) if task.kind == "multi_label" else 0.0)
    return head


def span_cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """Summed over the rows whose answer the input holds; 0 if it holds none."""
    return functional.cross_entropy(scores, labels, ignore_index=IGNORED, reduction="sum")


def rating_loss(task: Task, logits: Tensor, shares: Tensor) -> Tensor:
    """Summed over examples; ``shares``: the right ratings, 0 to 1, (examples,)."""
    if task.loss == "squared_error":
        return functional.mse_loss(torch.sigmoid(logits), shares, reduction="sum")
    return functional.binary_cross_entropy_with_logits(logits, shares, reduction="sum")


def chosen_labels(task: Task, logits: Tensor, multi_label: str) -> tuple[str, ...]:
    """Labels above the threshold; the best one if none is (every pair has a relation)."""
    if multi_label == "softmax":
        chosen = torch.softmax(logits, -1) > TLIDB_MULTI_LABEL_THRESHOLD
    else:
        chosen = torch.sigmoid(logits) > MULTI_LABEL_THRESHOLD
    if not bool(chosen.any()):
        chosen[int(logits.argmax())] = True
    return tuple(label for label, yes in zip(task.labels, chosen.tolist(), strict=True) if yes)


def best_spans(logits: Tensor, allowed: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """First and last token of the span with the highest start + end score.

    Spans of more than ``longest`` tokens, of tokens outside the context, or that mix the "no
    answer" token with others are not considered. Shapes (examples,) each.
    """
    start = logits[..., 0].masked_fill(~allowed, float("-inf"))
    end = logits[..., 1].masked_fill(~allowed, float("-inf"))
    width = logits.shape[1]
    index = torch.arange(width, device=logits.device)
    length = index[None, :] - index[:, None]
    fits = (length >= 0) & (length < longest)
    fits[0, 1:] = False  # "no answer" is a span of its own
    pairs = (start[:, :, None] + end[:, None, :]).masked_fill(~fits, float("-inf"))
    best = pairs.flatten(1).argmax(-1)
    return best // width, best % width
