"""The protocol between the trainer and models of all families.

The main implementations are ``Encoder`` (task heads on pooled or token outputs), ``Decoder`` and
``EncoderDecoder`` (text to text). Training and evaluation use only this protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.layers.ragged import Ints, build_ragged, pad_rows
from tasktransfer.models.staging import Inputs


class FamilyModel(Protocol):
    """A model of one family with everything needed for its tasks."""

    @property
    def module(self) -> nn.Module:
        """Module with all weights, including heads, for optimisers and checkpoints."""
        ...

    def get_parts(self) -> dict[str, dict[str, nn.Parameter]]:
        """Return the named parts that a stage can train separately or copy from another model.

        ``encoder`` is the pre-trained encoder, with its embeddings in an encoder-decoder.
        ``decoder`` is the rest of an encoder-decoder. ``body`` is a whole text-to-text model.
        ``head.<task>`` is an encoder's head, and ``adapter.<task>`` its adapter, if it has
        adapters. Parts may overlap.

        Returns:
            Name of the part → its parameters by their names inside the part.
        """
        ...

    @property
    def paths(self) -> tuple[str, ...]:
        """Active fast paths among packed, attention, dropout, trees and first_tokens."""
        ...

    @property
    def hidden_size(self) -> int:
        """Width of the hidden states between layers."""
        ...

    @property
    def layers(self) -> int:
        """Number of layers of the model, or of the encoder in an encoder-decoder."""
        ...

    @property
    def side_by_side(self) -> bool:
        """True if several threads can compute with the model at once.

        Their timing then changes no random numbers.
        """
        ...

    def enter_training_mode(self) -> None:
        """Set the module to training mode, with all configured dropouts."""
        ...

    def prepare_inputs(self, split: EncodedSplit, examples: Sequence[int]) -> Inputs:
        """Return the inputs of ``compute_loss``, while their copy to the device is under way.

        They do not depend on weights, so this can run while the device is still computing.
        """
        ...

    def compute_loss(
        self, split: EncodedSplit, examples: Sequence[int], inputs: Inputs | None = None
    ) -> Tensor:
        """Compute the loss summed over ``examples`` as a float32 scalar.

        It is not averaged: losses of a batch's micro-batches are added, and the sum is divided by
        the divisor from ``compute_loss_divisor`` for the whole batch.

        Args:
            inputs: result of ``prepare_inputs``; None to prepare them here.
        """
        ...

    def compute_loss_divisor(self, split: EncodedSplit, examples: Sequence[int]) -> float:
        """Return the number by which a batch's summed loss is divided.

        It is the number of examples for encoders, and of counted answer tokens for text-to-text
        models.
        """
        ...

    def split_for_training(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        """Split training examples into micro-batches of about ``token_budget`` tokens."""
        ...

    def split_for_prediction(
        self, split: EncodedSplit, examples: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        """Split evaluated examples into micro-batches of about ``token_budget`` tokens."""
        ...

    def predict(self, split: EncodedSplit, examples: Sequence[int]) -> list[tuple[str, ...]]:
        """Predict labels, an option's number or an answer's text for each example."""
        ...

    def save(self, folder: Path) -> None:
        """Write the weights as safetensors for ``load_model`` and transformers."""
        ...


def pad_to_tensors(
    rows: Sequence[Ints],
    fill: int,
    device: torch.device,
    *,
    left: bool = False,
    multiple: int = 1,
) -> tuple[Tensor, Tensor]:
    """Pad rows of token ids to a tensor, and return it with its attention mask.

    Returns:
        The ids, shape (rows, longest, rounded up to a ``multiple``), int64. The attention mask has
        the same shape, int64, and is 1 for tokens and 0 for padding.
    """
    values, mask = pad_rows(build_ragged(rows), fill, left=left, multiple=multiple)
    return torch.from_numpy(values).to(device), torch.from_numpy(mask).to(device)
