"""Copying of a micro-batch's inputs to the device in one asynchronous copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tasktransfer.layers.packing import Pack

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = dict[str, Array]

ALIGNMENT = 16
"""Alignment of arrays in bytes, for fast reads on GPUs."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a model's loss or logits on its device, by name."""

    tensors: Mapping[str, Tensor]
    pack: Pack | None = None

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]


def copy_to_device(arrays: Mapping[str, Array], device: torch.device) -> dict[str, Tensor]:
    """Copy arrays to a device as tensors of equal types.

    All arrays are copied to a GPU in one asynchronous copy from pinned memory.
    """
    if device.type == "cpu":
        return {name: torch.from_numpy(array) for name, array in arrays.items()}
    begins, size = {}, 0
    for name, array in arrays.items():
        begins[name] = size
        size += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    together = np.zeros(size, np.uint8)
    for name, array in arrays.items():
        together[begins[name] :][: array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
    there = torch.from_numpy(together).pin_memory().to(device, non_blocking=True)
    return {
        name: there[begins[name] : begins[name] + array.nbytes]
        .view(torch.from_numpy(array).dtype)
        .view(array.shape)
        for name, array in arrays.items()
    }
