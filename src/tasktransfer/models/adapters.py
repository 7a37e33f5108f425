"""Adapters: small bottlenecks between the layers of an encoder, one set per task.

Houlsby et al. (2019), as in MADE: two adapters per layer, after the output of the attention and of
the feed-forward part, before residual and norm. An adapter is a down-projection, swish, an
up-projection and its own residual. Adapters are hooks on the encoder's modules, whose code and
parameters do not change. The active task is set per thread, so that micro-batches of two tasks can
be computed in parallel.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tasktransfer.errors import ModelError
from tasktransfer.layers.first_tokens import ARCHITECTURES
from tasktransfer.models.weights import read_weights

ADAPTERS_FILE = "adapters.safetensors"

START_BOUND = 0.02 * math.sqrt(3)
"""Bound of the uniform initialisation, which has the standard deviation of BERT's initialisation.

All tasks' adapters of a seed have the same initial weights. Adapters that are averaged later (PoE,
section IV-C) therefore start from the same point."""


class Adapter(nn.Module):
    """One bottleneck: (..., width) → (..., width)."""

    def __init__(self, width: int, reduction: int, generator: torch.Generator) -> None:
        super().__init__()
        self.down = nn.Linear(width, width // reduction)
        self.up = nn.Linear(width // reduction, width)
        with torch.no_grad():
            for linear in (self.down, self.up):
                linear.weight.uniform_(-START_BOUND, START_BOUND, generator=generator)
                linear.bias.zero_()

    def forward(self, states: Tensor) -> Tensor:
        changed: Tensor = self.up(functional.silu(self.down(states)))
        return states + changed


class AdapterBank(nn.Module):
    """The adapters of several tasks for one encoder.

    Args:
        backbone: encoder with BERT's or a similar architecture; only hooks are added to it.
        tasks: task names, without dots.
        reduction: ratio of the hidden size to the width of a bottleneck.
        seed: seed of the initial weights, which are the same for all tasks.

    Raises:
        ModelError: adapters are not supported for the architecture, or the reduction is larger than
            the hidden size.
    """

    def __init__(self, backbone: Any, tasks: tuple[str, ...], reduction: int, seed: int) -> None:
        super().__init__()
        config = backbone.config
        if config.model_type not in ARCHITECTURES:
            raise ModelError(
                f"adapters: Models of type {config.model_type} are not supported. Use a model "
                f"of type {', '.join(sorted(ARCHITECTURES))}."
            )
        width = int(config.hidden_size)
        if not 1 <= reduction <= width:
            raise ModelError(
                f"adapters: The reduction {reduction} is larger than the hidden size {width}. "
                f"Choose a value from 1 to {width}."
            )
        places = [
            module.dropout
            for layer in backbone.encoder.layer
            for module in (layer.attention.output, layer.output)
        ]
        self.banks = nn.ModuleDict(
            {task: _initialise_adapters(len(places), width, reduction, seed) for task in tasks}
        )
        self._this_thread = threading.local()
        for number, module in enumerate(places):
            module.register_forward_hook(self._build_hook(number))

    @property
    def task(self) -> str | None:
        """Task whose adapters this thread uses, or None outside a ``use_task`` block."""
        return getattr(self._this_thread, "task", None)

    @contextmanager
    def use_task(self, task: str | None) -> Iterator[None]:
        """Use a task's adapters for this thread's forward passes within the block."""
        before, self._this_thread.task = self.task, task
        try:
            yield
        finally:
            self._this_thread.task = before

    def get_parts(self) -> dict[str, dict[str, nn.Parameter]]:
        """Return the adapters' parameters by part (``adapter.<task>``) and name."""
        return {
            f"adapter.{task}": dict(bank.named_parameters()) for task, bank in self.banks.items()
        }

    def save(self, folder: Path) -> None:
        """Write the adapters of all tasks to one file in a checkpoint's folder."""
        from safetensors.torch import save_file

        tensors = {
            name: tensor.detach().cpu().contiguous()
            for name, tensor in self.banks.state_dict().items()
        }
        save_file(tensors, folder / ADAPTERS_FILE)

    def load(self, folder: Path) -> None:
        """Load a checkpoint's adapters for the tasks of this bank.

        Nothing is loaded if the checkpoint has no adapters.

        Raises:
            ModelError: the adapters are damaged, or have another width or number of layers.
        """
        file = folder / ADAPTERS_FILE
        if not file.is_file():
            return
        own = self.banks.state_dict()
        read = {
            name: tensor
            for name, tensor in read_weights(file).items()
            if name.partition(".")[0] in self.banks
        }
        wanted = [
            name for name in own if name.partition(".")[0] in {n.partition(".")[0] for n in read}
        ]
        for name in dict.fromkeys([*wanted, *read]):
            shapes = [list(of[name].shape) if name in of else None for of in (read, own)]
            if shapes[0] != shapes[1]:
                raise ModelError(
                    f"{file}: The parameter {name} has the shape {shapes[0] or 'missing'} in the "
                    f"file, but {shapes[1] or 'missing'} in the model. Use adapters of the same "
                    "encoder and reduction."
                )
        for name, tensor in read.items():
            own[name].copy_(tensor)

    def _build_hook(self, number: int) -> Any:
        """Return a forward hook that applies the active task's adapter to a module's output."""

        def apply_adapter(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
            if (task := self.task) is None:
                return output
            adapted: Tensor = self.banks[task][number](output)  # type: ignore[index]
            return adapted

        return apply_adapter


def _initialise_adapters(places: int, width: int, reduction: int, seed: int) -> nn.ModuleList:
    generator = torch.Generator().manual_seed(seed)
    return nn.ModuleList(Adapter(width, reduction, generator) for _ in range(places))
