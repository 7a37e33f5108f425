"""The optimiser of a training, built from its hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from tasktransfer.core.specs import Training
from tasktransfer.errors import ConfigError
from tasktransfer.models.heads import Head


def create_optimiser(
    module: nn.Module, moving: Sequence[nn.Parameter], training: Training
) -> torch.optim.Optimizer:
    """Create the optimiser: Adam, AdamW (with weight decay) or Adamax.

    With 8-bit moments (Dettmers et al. 2022) the optimiser comes from bitsandbytes, which keeps 32
    bits for parameters with fewer than 4,096 elements.

    Args:
        module: the model, whose heads may have a separate learning rate.
        moving: its parameters that are trained.

    Raises:
        ConfigError: 8 bits are configured, but bitsandbytes cannot be imported.
    """
    rate, decay = training.learning_rate, training.weight_decay
    parameters = _group_parameters(module, moving, training)
    if training.optimiser_bits == 8:
        library = _import_bitsandbytes()
        kind = library.AdamW8bit if decay else library.Adam8bit
        narrow: torch.optim.Optimizer = kind(parameters, lr=rate, weight_decay=decay)
        return narrow
    if training.optimiser == "adamax":
        return torch.optim.Adamax(parameters, lr=rate, weight_decay=decay)
    if decay:
        return torch.optim.AdamW(parameters, lr=rate, weight_decay=decay, fused=True)
    return torch.optim.Adam(parameters, lr=rate, fused=True)


def _group_parameters(
    module: nn.Module, moving: Sequence[nn.Parameter], training: Training
) -> list[Any]:
    """Group the trained parameters by learning rate and weight decay."""
    rate = training.head_learning_rate
    spared = training.weight_decay > 0 and training.decays == "matrices"
    if rate is None and not spared:
        return list(moving)
    layers = (layer for layer in module.modules() if isinstance(layer, Head))
    heads = {id(parameter) for layer in layers for parameter in layer.parameters()}
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for parameter in moving:
        # Biases and norms are vectors; all other parameters are matrices.
        key = rate is not None and id(parameter) in heads, spared and parameter.ndim < 2
        groups.setdefault(key, []).append(parameter)
    return [
        {
            "params": parameters,
            **({"lr": rate} if in_head else {}),
            **({"weight_decay": 0.0} if is_vector else {}),
        }
        for (in_head, is_vector), parameters in groups.items()
    ]


def _import_bitsandbytes() -> Any:
    try:
        from bitsandbytes import optim  # noqa: PLC0415  # an optional dependency
    except ImportError as error:
        raise ConfigError(
            "training.optimiser_bits: 8-bit optimiser states require the package bitsandbytes, "
            f"which cannot be imported ({error}). Run pip install 'tasktransfer[eight-bit]', or "
            "set optimiser_bits to 32."
        ) from error
    return optim
