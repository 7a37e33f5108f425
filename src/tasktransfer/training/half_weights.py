"""Weights in half precision, cast once an update by one operation.

Under autocast every weight of a matrix product is cast by itself, and so is its gradient on the way
back: BERT-base's are 270 launches an update. The numbers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from tasktransfer.models.heads import Head


class HalfWeights:
    """The weights of a module's matrix products in bfloat16, beside their own.

    What a product shares with an embedding is left to autocast: the embedding reads it in float32.
    Heads compute in float32.
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

    def refresh(self) -> None:
        """Cast the weights as they are now."""
        with torch.no_grad():
            torch._foreach_copy_(self._halves, self._weights)

    def within(self, work: Callable[[], Tensor]) -> Tensor:
        """What ``work`` makes of the module while it has its weights in half precision."""
        from torch.func import functional_call

        made: Tensor = functional_call(self._caller, self._by_name, (work,), tie_weights=False)
        return made

    def gradients(self, loss: Tensor, moving: Sequence[nn.Parameter]) -> tuple[Tensor | None, ...]:
        """Of a loss that was made ``within``: one for each parameter, in float32, None where the
        loss does not depend on it."""
        inputs = [self._half_of.get(id(parameter), parameter) for parameter in moving]
        made = torch.autograd.grad(loss, inputs, allow_unused=True)
        narrow = [gradient for gradient in made if _is_half(gradient)]
        wide = [torch.empty_like(gradient, dtype=torch.float32) for gradient in narrow]
        if narrow:
            torch._foreach_copy_(wide, narrow)
        widened = iter(wide)
        return tuple(next(widened) if _is_half(gradient) else gradient for gradient in made)


class _Caller(nn.Module):
    """Calls whatever uses the module, with the weights that ``functional_call`` puts in."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, work: Callable[[], Tensor]) -> Tensor:
        return work()


def _is_half(gradient: Tensor | None) -> bool:
    return gradient is not None and gradient.dtype == torch.bfloat16
