"""The optimiser of a training, as its hyperparameters say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from tasktransfer.core.specs import Training
from tasktransfer.errors import ConfigError


def optimiser_of(moving: Sequence[nn.Parameter], training: Training) -> torch.optim.Optimizer:
    """Adam, AdamW where weights decay, or Adamax; with moments of 8 bits (Dettmers et al. 2022) by
    bitsandbytes, which keeps those of parameters below 4,096 numbers in 32.

    Raises:
        ConfigError: 8 bits are asked for, and bitsandbytes is not there.
    """
    rate, decay = training.learning_rate, training.weight_decay
    if training.optimiser_bits == 8:
        library = _bitsandbytes()
        kind = library.AdamW8bit if decay else library.Adam8bit
        narrow: torch.optim.Optimizer = kind(moving, lr=rate, weight_decay=decay)
        return narrow
    if training.optimiser == "adamax":
        return torch.optim.Adamax(moving, lr=rate, weight_decay=decay)
    if decay:
        return torch.optim.AdamW(moving, lr=rate, weight_decay=decay, fused=True)
    return torch.optim.Adam(moving, lr=rate, fused=True)


def _bitsandbytes() -> Any:
    try:
        from bitsandbytes import optim  # noqa: PLC0415  # an extra of its own
    except ImportError as error:
        raise ConfigError(
            f"training.optimiser_bits: 8 needs the package bitsandbytes, which cannot be imported "
            f"({error}); pip install 'tasktransfer[eight-bit]', or set it to 32"
        ) from error
    return optim
