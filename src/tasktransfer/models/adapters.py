"""Adapters: small bottlenecks between the layers of an encoder, one set of them for each task.

Houlsby et al. (2019), as MADE has them: two in each layer, behind the attention's and the
feed-forward part's output, before residual and norm; an adapter is down-projection, swish,
up-projection and a residual of its own. They are hooks on the encoder's modules, whose code and
parameters stay as they are. Which task's adapters are in use is a thread's own matter, so that
micro-batches of two tasks may be computed side by side.
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
"""Weights start uniformly within this bound, whose standard deviation is that of BERT's own start.
All tasks' adapters of a seed start from the same draw: averaged later (PoE, section IV-C), they
have moved away from one point."""


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
        backbone: of BERT's architecture or one built like it; gets hooks, nothing else.
        tasks: names; none has a dot.
        reduction: how many times narrower a bottleneck is than the hidden states.
        seed: of the start, the same for all tasks.

    Raises:
        ModelError: the architecture has no places for adapters that are known here, or the
            reduction leaves no bottleneck.
    """

    def __init__(self, backbone: Any, tasks: tuple[str, ...], reduction: int, seed: int) -> None:
        super().__init__()
        config = backbone.config
        if config.model_type not in ARCHITECTURES:
            raise ModelError(
                f"adapters: {config.model_type} has no known places for them; use a model of "
                f"{', '.join(sorted(ARCHITECTURES))}"
            )
        width = int(config.hidden_size)
        if not 1 <= reduction <= width:
            raise ModelError(
                f"adapters: a reduction of {reduction} leaves no bottleneck of {width} hidden "
                f"states; choose 1 to {width}"
            )
        places = [
            module.dropout
            for layer in backbone.encoder.layer
            for module in (layer.attention.output, layer.output)
        ]
        self.banks = nn.ModuleDict(
            {task: _fresh(len(places), width, reduction, seed) for task in tasks}
        )
        self._this_thread = threading.local()
        for number, module in enumerate(places):
            module.register_forward_hook(self._hook(number))

    @property
    def task(self) -> str | None:
        """The task whose adapters this thread's forward passes go through, None outside a block."""
        return getattr(self._this_thread, "task", None)

    @contextmanager
    def using(self, task: str | None) -> Iterator[None]:
        """Let this thread's forward passes go through a task's adapters in the block."""
        before, self._this_thread.task = self.task, task
        try:
            yield
        finally:
            self._this_thread.task = before

    def parts(self) -> dict[str, dict[str, nn.Parameter]]:
        """``adapter.<task>`` → its parameters."""
        return {
            f"adapter.{task}": dict(bank.named_parameters()) for task, bank in self.banks.items()
        }

    def save(self, folder: Path) -> None:
        """Write all tasks' adapters into one file of a checkpoint's folder."""
        from safetensors.torch import save_file

        tensors = {
            name: tensor.detach().cpu().contiguous()
            for name, tensor in self.banks.state_dict().items()
        }
        save_file(tensors, folder / ADAPTERS_FILE)

    def load(self, folder: Path) -> None:
        """Take the adapters of the tasks that a checkpoint and this bank have in common; none where
        the checkpoint has no adapters.

        Raises:
            ModelError: they are damaged, of another width, or of another number of layers.
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
                    f"{file}: {name} is {shapes[0] or 'missing'}, the model's is "
                    f"{shapes[1] or 'missing'}; take adapters of the same encoder and reduction"
                )
        for name, tensor in read.items():
            own[name].copy_(tensor)

    def _hook(self, number: int) -> Any:
        def through_adapter(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
            if (task := self.task) is None:
                return output
            adapted: Tensor = self.banks[task][number](output)  # type: ignore[index]
            return adapted

        return through_adapter


def _fresh(places: int, width: int, reduction: int, seed: int) -> nn.ModuleList:
    generator = torch.Generator().manual_seed(seed)
    return nn.ModuleList(Adapter(width, reduction, generator) for _ in range(places))
