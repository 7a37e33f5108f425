"""In-batch losses: every reply in a batch is a negative example for all other contexts.

This loss is not a sum over micro-batches. All micro-batches are therefore encoded first, without
gradients. The batch's loss gives a gradient (slope) for every encoding. Each micro-batch is then
encoded again with the same dropout masks, and its slopes are back-propagated. The sum of these
gradients is the batch's gradient, whatever the size of the micro-batches.
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
    """A model with tasks that have an in-batch loss."""

    def has_in_batch_loss(self, split: EncodedSplit) -> bool:
        """Return whether a split's task is trained with in-batch negatives."""
        ...

    def encode(self, split: EncodedSplit, examples: Sequence[int], inputs: Inputs | None) -> Tensor:
        """Encode examples for the in-batch loss, shape (examples, ...)."""
        ...

    def compute_in_batch_loss(self, encodings: Tensor) -> Tensor:
        """Compute the in-batch loss, summed over examples."""
        ...


def uses_in_batch_loss(model: FamilyModel, split: EncodedSplit) -> TypeGuard[InBatchModel]:
    """Return whether a split's task is trained with in-batch negatives."""
    decide = getattr(model, "has_in_batch_loss", None)
    return decide is not None and bool(decide(split))


def compute_encoding_gradients(
    model: InBatchModel, encodings: Sequence[Tensor], factor: float
) -> tuple[Tensor, list[Tensor]]:
    """Return a batch's loss, and its gradients with respect to the encodings.

    Args:
        encodings: encodings of each micro-batch, without gradients.
        factor: factor of the summed loss in the slopes.

    Returns:
        The summed loss, and for each micro-batch the gradient of ``factor`` times the loss with
        respect to its encodings.
    """
    whole = torch.cat([each.float() for each in encodings]).requires_grad_()
    with torch.enable_grad():
        loss = model.compute_in_batch_loss(whole)
    (slopes,) = torch.autograd.grad(loss * factor, whole)
    return loss.detach(), list(torch.split(slopes, [len(each) for each in encodings]))


def compute_in_batch_dev_loss(
    model: InBatchModel, split: EncodedSplit, setup: Setup, batch_size: int, tokens: int
) -> float:
    """Compute the mean loss over a split, in batches of consecutive examples.

    The last batch may be smaller.
    """
    examples = range(len(split))
    encodings: dict[int, Tensor] = {}
    with torch.inference_mode(), setup.autocast():
        for some in model.split_for_training(split, examples, tokens):
            encodings |= zip(some, model.encode(split, some, None).float(), strict=True)
        total = sum(
            float(
                model.compute_in_batch_loss(
                    torch.stack([encodings[i] for i in examples[a : a + batch_size]])
                )
            )
            for a in range(0, len(split), batch_size)
        )
    return total / len(split)
