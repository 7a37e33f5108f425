"""What the trainer asks of a model, whatever its family.

Three classes answer to this protocol: ``Encoder`` (task heads on pooled or token outputs),
``Decoder`` and ``EncoderDecoder`` (text to text). The trainer and the evaluation know no more of a
model than what stands here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.layers.ragged import Ints, padded, ragged
from tasktransfer.models.staging import Inputs


class FamilyModel(Protocol):
    """A model of one family with everything needed for its tasks."""

    @property
    def module(self) -> nn.Module:
        """All weights, heads included: what the optimiser updates and a checkpoint holds."""
        ...

    def parts(self) -> dict[str, dict[str, nn.Parameter]]:
        """The named parts, which a stage may train alone or take from others: name → parameters by
        their names inside the part.

        ``encoder``: the pre-trained encoder (of an encoder-decoder with the embeddings that it
        reads). ``decoder``: what an encoder-decoder has besides. ``body``: all of a text-to-text
        model. ``head.<task>``: an encoder's head; ``adapter.<task>``: its adapter, if it has
        adapters. Parts may overlap.
        """
        ...

    @property
    def paths(self) -> tuple[str, ...]:
        """Which fast paths it takes, of packed, attention, dropout, trees, first_tokens."""
        ...

    @property
    def hidden_size(self) -> int:
        """Width of the hidden states between its layers."""
        ...

    @property
    def layers(self) -> int:
        """Its layers; of an encoder-decoder those of the encoder."""
        ...

    @property
    def side_by_side(self) -> bool:
        """Whether several threads may compute with it at once, and none of its random numbers
        depends on which is faster."""
        ...

    def start_training(self) -> None:
        """Put the module into training mode, and with it those dropouts that are to be active."""
        ...

    def prepare(self, split: EncodedSplit, examples: Sequence[int]) -> Inputs:
        """What ``loss`` reads of ``examples``, on its way to the device. It depends on no weight,
        so that it may be made while the device still computes something else."""
        ...

    def loss(
        self, split: EncodedSplit, examples: Sequence[int], inputs: Inputs | None = None
    ) -> Tensor:
        """Loss summed over ``examples`` (not averaged: micro-batches of one batch are added up, and
        the sum is divided by the whole batch's ``weight``). A float32 scalar. ``inputs``: of
        ``prepare``, where that was done before."""
        ...

    def weight(self, split: EncodedSplit, examples: Sequence[int]) -> float:
        """What a batch's summed loss is divided by: examples for encoders, counted answer tokens
        for text-to-text models."""
        ...

    def training_micro_batches(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        """Examples cut into what ``loss`` is given at once, about ``token_budget`` tokens."""
        ...

    def prediction_micro_batches(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        """The same for ``predict``."""
        ...

    def predict(self, split: EncodedSplit, examples: Sequence[int]) -> list[tuple[str, ...]]:
        """One prediction an example: labels, the option's number, or the answer's text."""
        ...

    def save(self, folder: Path) -> None:
        """Write the weights as safetensors, loadable by ``load_model`` and by transformers."""
        ...


def pad(
    rows: Sequence[Ints],
    fill: int,
    device: torch.device,
    *,
    left: bool = False,
    multiple: int = 1,
) -> tuple[Tensor, Tensor]:
    """Stack rows of token ids.

    Returns:
        ids, shape (rows, longest, rounded up to a ``multiple``), int64; mask of the
        same shape, int64, 1 where there is a token.
    """
    values, mask = padded(ragged(rows), fill, left=left, multiple=multiple)
    return torch.from_numpy(values).to(device), torch.from_numpy(mask).to(device)
