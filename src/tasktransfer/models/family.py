"""What the trainer asks of a model, whatever its family.

Three classes answer to this protocol: ``Encoder`` (task heads on pooled or token outputs),
``Decoder`` and ``EncoderDecoder`` (text to text). The trainer and the evaluation know no more of a
model than what stands here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from tasktransfer.models.encoded import EncodedSplit, Ints


class FamilyModel(Protocol):
    """A model of one family with everything needed for its tasks."""

    @property
    def module(self) -> nn.Module:
        """All weights, heads included: what the optimiser updates and a checkpoint holds."""
        ...

    @property
    def paths(self) -> tuple[str, ...]:
        """Which fast paths it takes, of packed, attention, dropout, trees, first_tokens."""
        ...

    @property
    def hidden_size(self) -> int:
        """How many numbers stand for a token between its layers."""
        ...

    @property
    def side_by_side(self) -> bool:
        """Whether several threads may compute with it at once, and none of its random numbers
        depends on which is faster."""
        ...

    def loss(self, split: EncodedSplit, units: Sequence[int]) -> Tensor:
        """Loss summed over ``units`` (not averaged: micro-batches of one batch are added up, and
        the sum is divided by the whole batch's ``weight``). A float32 scalar."""
        ...

    def weight(self, split: EncodedSplit, units: Sequence[int]) -> float:
        """What a batch's summed loss is divided by: units for encoders, counted answer tokens for
        text-to-text models."""
        ...

    def training_portions(
        self, split: EncodedSplit, units: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        """Units cut into what ``loss`` is given at once, about ``token_budget`` tokens."""
        ...

    def prediction_portions(
        self, split: EncodedSplit, units: Sequence[int], token_budget: int
    ) -> list[list[int]]:
        """The same for ``predict``."""
        ...

    def predict(self, split: EncodedSplit, units: Sequence[int]) -> list[tuple[str, ...]]:
        """One prediction a unit: labels, the option's number, or the answer's text."""
        ...

    def save(self, folder: Path) -> None:
        """Write the weights as safetensors, loadable by ``load_model`` and by transformers."""
        ...


def pad(
    rows: Sequence[Ints], fill: int, device: torch.device, *, left: bool = False
) -> tuple[Tensor, Tensor]:
    """Stack rows of token ids.

    Returns:
        ids, shape (rows, longest), int64; mask of the same shape, int64, 1 where a token stands.
    """
    lengths = [len(row) for row in rows]
    width = max(lengths)
    ids = np.full((len(rows), width), fill, dtype=np.int64)
    mask = np.zeros((len(rows), width), dtype=np.int64)
    for i, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        place = slice(width - length, width) if left else slice(0, length)
        ids[i, place] = row
        mask[i, place] = 1
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)
