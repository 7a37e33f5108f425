"""Gradient accumulation for one update, in micro-batches as large as fit into memory.

The size of the micro-batches changes sums by rounding only. It also changes dropout masks, since
each micro-batch samples its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.layers.dropout import use_dropout_seed
from tasktransfer.models.family import FamilyModel
from tasktransfer.training.ahead import MicroBatch, MicroBatches
from tasktransfer.training.half_weights import HalfWeights
from tasktransfer.training.in_batch import (
    InBatchModel,
    compute_encoding_gradients,
    uses_in_batch_loss,
)
from tasktransfer.training.samplers import Update
from tasktransfer.training.setup import Setup

Gradients = tuple[Tensor | None, ...] | None
"""One gradient per trained parameter, in module order; None if no loss depends on it."""


@dataclass(frozen=True, slots=True)
class _Work:
    """One micro-batch of a batch.

    Attributes:
        place: index of the batch in the update.
        slopes: gradient of the loss with respect to the micro-batch's encodings, if the loss
            depends on the batch as a whole (``has_in_batch_loss``).
    """

    place: int
    micro_batch: MicroBatch
    dropout_seed: int
    slopes: Tensor | None = None


def set_gradients(
    model: FamilyModel,
    moving: Sequence[nn.Parameter],
    splits: Mapping[str, EncodedSplit],
    update: Update,
    made: MicroBatches,
    setup: Setup,
    halves: HalfWeights | None = None,
) -> list[Tensor]:
    """Compute and set the gradients of the trained parameters for an update.

    The loss of an update is the weighted sum of its batches' mean losses.

    Args:
        moving: the parameters that are trained.
        made: the update's micro-batches.
        halves: the model's weights in half precision, if they are cast together.

    Returns:
        Each batch's mean loss, unweighted, still on the device: there is no synchronisation here.
    """
    divisors = [model.compute_loss_divisor(splits[batch.task], batch.examples) for batch in update]

    def compute_shard(shard: Sequence[_Work]) -> tuple[list[Tensor], Gradients]:
        losses = [torch.zeros((), device=setup.device) for _ in update]
        sums: Gradients = None
        if halves is not None:
            halves.cast_weights()
        with setup.cache_casts():
            for work in shard:
                batch = update[work.place]
                with setup.autocast(), use_dropout_seed(work.dropout_seed):
                    loss = _compute_loss(model, splits[batch.task], work, halves)
                if work.slopes is None:
                    loss = loss / divisors[work.place]
                    losses[work.place] += loss.detach()
                if loss.requires_grad:  # False if it depends on frozen parts only
                    weighted = loss * batch.weight if work.slopes is None else loss
                    sums = _add_gradients(sums, _compute_gradients(weighted, moving, halves))
        return losses, sums

    seeded = _assign_seeds(made)
    of_whole: dict[int, Tensor] = {}
    for index, batch in enumerate(update):
        split = splits[batch.task]
        if uses_in_batch_loss(model, split):
            mine = [work for work in seeded if work.place == index]
            factor = batch.weight / divisors[index]
            loss, slopes = _run_first_pass(model, split, mine, factor, setup, halves)
            of_whole[index] = loss / divisors[index]
            with_slopes = iter(slopes)
            seeded = [
                replace(work, slopes=next(with_slopes)) if work.place == index else work
                for work in seeded
            ]
    shards = setup.workers.split_work(seeded)
    results = setup.workers.apply(compute_shard, shards)
    gradients: Gradients = None
    for _, of_one in results:
        gradients = _add_gradients(gradients, of_one)
    if gradients is not None:
        for parameter, gradient in zip(moving, gradients, strict=True):
            parameter.grad = None if gradient is None else gradient.to_dense()
    of_parts = zip(*(r[0] for r in results), strict=True)
    return [
        of_whole[index] if index in of_whole else torch.stack(of_batch).sum()
        for index, of_batch in enumerate(of_parts)
    ]


def set_pair_gradients(
    model: FamilyModel,
    moving: Sequence[nn.Parameter],
    splits: Mapping[str, EncodedSplit],
    update: Update,
    made: MicroBatches,
    setup: Setup,
    halves: HalfWeights | None = None,
) -> tuple[list[Tensor], Tensor]:
    """Compute and set the gradients for an update of two batches, and compare them.

    Returns:
        Each batch's mean loss, and the cosine similarity of the two batches' gradients over the
        parameters on which both losses depend. The similarity is 0 if there are none.
    """
    losses: list[Tensor] = []
    of_each: list[list[Tensor | None]] = []
    for batch, of_batch in zip(update, made, strict=True):
        losses += set_gradients(model, moving, splits, (batch,), [of_batch], setup, halves)
        of_each.append([parameter.grad for parameter in moving])
        for parameter in moving:
            parameter.grad = None
    products = torch.zeros(3, device=setup.device)
    for parameter, a, b in zip(moving, *of_each, strict=True):
        parameter.grad = b if a is None else a if b is None else a + b
        if a is not None and b is not None:
            products += torch.stack([(a * b).sum(), a.square().sum(), b.square().sum()])
    return losses, products[0] / (products[1] * products[2]).sqrt().clamp_min(1e-30)


def _run_first_pass(
    model: InBatchModel,
    split: EncodedSplit,
    works: Sequence[_Work],
    factor: float,
    setup: Setup,
    halves: HalfWeights | None,
) -> tuple[Tensor, list[Tensor]]:
    """Return a batch's summed loss, and its gradients with respect to encodings by micro-batch.

    Both come from ``compute_encoding_gradients``.
    """
    encodings = []
    if halves is not None:
        halves.cast_weights()
    with torch.no_grad(), setup.cache_casts():
        for work in works:
            with setup.autocast(), use_dropout_seed(work.dropout_seed):
                encodings.append(_compute_encodings(model, split, work, halves))
    return compute_encoding_gradients(model, encodings, factor)


def _compute_encodings(
    model: InBatchModel, split: EncodedSplit, work: _Work, halves: HalfWeights | None
) -> Tensor:
    examples, inputs = work.micro_batch.examples, work.micro_batch.inputs

    def encode() -> Tensor:
        return model.encode(split, examples, inputs)

    return encode() if halves is None else halves.compute_with_halves(encode)


def _compute_loss(
    model: FamilyModel, split: EncodedSplit, work: _Work, halves: HalfWeights | None
) -> Tensor:
    examples, inputs = work.micro_batch.examples, work.micro_batch.inputs
    if work.slopes is not None and uses_in_batch_loss(model, split):
        # Its gradient is that of the batch's loss; its value has no meaning.
        return (_compute_encodings(model, split, work, halves).float() * work.slopes).sum()

    def loss() -> Tensor:
        if inputs is None:
            return model.compute_loss(split, examples)
        return model.compute_loss(split, examples, inputs)

    return loss() if halves is None else halves.compute_with_halves(loss)


def _compute_gradients(
    loss: Tensor, moving: Sequence[nn.Parameter], halves: HalfWeights | None
) -> tuple[Tensor | None, ...]:
    if halves is None:
        return torch.autograd.grad(loss, moving, allow_unused=True)
    return halves.compute_gradients(loss, moving)


def _assign_seeds(made: MicroBatches) -> list[_Work]:
    work: list[_Work] = []
    for index, of_batch in enumerate(made):
        # Dropout depends on the position in the batch, not on the thread that computes it.
        seeds = torch.randint(1 << 62, (len(of_batch),)).tolist()
        work += [_Work(index, part, seed) for part, seed in zip(of_batch, seeds, strict=True)]
    return work


def _add_gradients(first: Gradients, second: Gradients) -> Gradients:
    """Add a second set of gradients to the first in place, and return the first."""
    if first is None or second is None:
        return second if first is None else first
    pairs = list(zip(first, second, strict=True))
    both = [(a, b) for a, b in pairs if a is not None and b is not None and not a.is_sparse]
    if both:
        torch._foreach_add_(*map(list, zip(*both, strict=True)))
    # An embedding's gradient may be sparse: rows with their indices, which are concatenated.
    return tuple(
        b if a is None else a + b if a.is_sparse and b is not None else a for a, b in pairs
    )
