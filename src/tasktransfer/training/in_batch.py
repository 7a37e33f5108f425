"""Losses that are of a batch as a whole: every reply of it is a wrong answer to all other contexts.

Such a loss is no sum over micro-batches. So all are encoded first, without gradients; the loss of
the batch gives a slope for every encoding; and each micro-batch is encoded again, with the same
dropout, and sent its slopes back. The sum of these gradients is the batch's, whatever the
micro-batches are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeGuard

import torch
from torch import Tensor

from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.staging import Inputs
from tasktransfer.training.setup import Setup


class InBatchModel(FamilyModel, Protocol):
    """A model with tasks whose loss is of the batch."""

    def in_batch(self, split: EncodedSplit) -> bool:
        """Whether a task is one of them."""
        ...

    def encode(self, split: EncodedSplit, examples: Sequence[int], inputs: Inputs | None) -> Tensor:
        """Encodings that the loss compares, (examples, ...)."""
        ...

    def in_batch_loss(self, encodings: Tensor) -> Tensor:
        """Of a batch, summed over its examples."""
        ...


def is_in_batch(model: FamilyModel, split: EncodedSplit) -> TypeGuard[InBatchModel]:
    """Whether the loss of a task is of the batch as a whole."""
    ask = getattr(model, "in_batch", None)
    return ask is not None and bool(ask(split))


def slopes_of(
    model: InBatchModel, encodings: Sequence[Tensor], factor: float
) -> tuple[Tensor, list[Tensor]]:
    """The loss of a batch, and its slopes.

    Args:
        encodings: of each micro-batch, without gradients.
        factor: what the summed loss is multiplied by before slopes are taken.

    Returns:
        The summed loss, and for each micro-batch the gradient of ``factor`` times it with respect
        to the micro-batch's encodings.
    """
    whole = torch.cat([each.float() for each in encodings]).requires_grad_()
    with torch.enable_grad():
        loss = model.in_batch_loss(whole)
    (slopes,) = torch.autograd.grad(loss * factor, whole)
    return loss.detach(), list(torch.split(slopes, [len(each) for each in encodings]))


def dev_loss(
    model: InBatchModel, split: EncodedSplit, setup: Setup, batch_size: int, tokens: int
) -> float:
    """The mean loss over a split, in batches of consecutive examples; the last may be smaller."""
    examples = range(len(split))
    encodings: dict[int, Tensor] = {}
    with torch.inference_mode(), setup.autocast():
        for some in model.training_micro_batches(split, examples, tokens):
            encodings |= zip(some, model.encode(split, some, None).float(), strict=True)
        total = sum(
            float(
                model.in_batch_loss(
                    torch.stack([encodings[i] for i in examples[a : a + batch_size]])
                )
            )
            for a in range(0, len(split), batch_size)
        )
    return total / len(split)
