"""Weights in half precision, cast once per update by one operation.

Under autocast every weight of a matrix product is cast separately, and so is its gradient in the
backward pass: 270 kernel launches per update for BERT-base. The numbers are identical.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from tasktransfer.models.heads import Head


class HalfWeights:
    """The weights of a module's matrix products in bfloat16, next to the float32 weights.

    Weights that a product shares with an embedding are left to autocast, because the embedding
    reads them in float32. Heads compute in float32.
    """

    def __init__(self, module: nn.Module) -> None:
        from transformers.pytorch_utils import Conv1D

        shared = {id(m.weight) for m in module.modules() if isinstance(m, nn.Embedding)}
        products = {
            id(parameter)
            for part in module.modules()
            if isinstance(part, nn.Linear | Conv1D) and not isinstance(part, Head)
            for parameter in part.parameters(recurse=False)
        }
        wanted = products - shared
        named = [(n, p) for n, p in module.named_parameters() if id(p) in wanted]
        self._weights: list[Tensor] = [parameter for _, parameter in named]
        self._halves = [
            torch.empty_like(p, dtype=torch.bfloat16).requires_grad_(p.requires_grad)
            for p in self._weights
        ]
        names = (f"module.{name}" for name, _ in named)
        self._by_name = dict(zip(names, self._halves, strict=True))
        self._half_of = {id(p): h for p, h in zip(self._weights, self._halves, strict=True)}
        self._caller = _Caller(module)

    def cast_weights(self) -> None:
        """Update the half-precision copy from the current float32 weights."""
        with torch.no_grad():
            torch._foreach_copy_(self._halves, self._weights)

    def compute_with_halves(self, work: Callable[[], Tensor]) -> Tensor:
        """Run ``work`` while the module has weights in half precision, and return its result."""
        from torch.func import functional_call

        made: Tensor = functional_call(self._caller, self._by_name, (work,), tie_weights=False)
        return made

    def compute_gradients(
        self, loss: Tensor, moving: Sequence[nn.Parameter]
    ) -> tuple[Tensor | None, ...]:
        """Compute the float32 gradients of a loss from ``compute_with_halves``.

        There is one per parameter; None if the loss does not depend on the parameter.
        """
        inputs = [self._half_of.get(id(parameter), parameter) for parameter in moving]
        made = torch.autograd.grad(loss, inputs, allow_unused=True)
        narrow = [gradient for gradient in made if _is_half(gradient)]
        wide = [torch.empty_like(gradient, dtype=torch.float32) for gradient in narrow]
        if narrow:
            torch._foreach_copy_(wide, narrow)
        widened = iter(wide)
        return tuple(next(widened) if _is_half(gradient) else gradient for gradient in made)


class _Caller(nn.Module):
    """A module that calls any function of another module, with weights from ``functional_call``."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, work: Callable[[], Tensor]) -> Tensor:
        return work()


def _is_half(gradient: Tensor | None) -> bool:
    return gradient is not None and gradient.dtype == torch.bfloat16
