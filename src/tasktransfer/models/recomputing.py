"""Layers whose inside is computed once more on the way back, in place of being kept.

Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"; transformers knows where a layer
begins and ends.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from torch import nn

from tasktransfer.errors import ModelError
from tasktransfer.layers.dropout import drawn_again
from tasktransfer.models.adapters import AdapterBank


def compute_layers_again(module: nn.Module, name: str) -> None:
    """Let every pre-trained model inside a module keep the input of its layers alone, while it is
    in training mode.

    Raises:
        ModelError: there is none, or it cannot do so. ``name`` is how the study calls it.
    """
    banks = [part for part in module.modules() if isinstance(part, AdapterBank)]

    def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        now, later = drawn_again()
        return now, _as_before(later, [(bank, bank.task) for bank in banks])

    settings = {"use_reentrant": False, "context_fn": contexts}
    models = list(_pretrained_models(module))
    if not models or not all(model.supports_gradient_checkpointing for model in models):
        raise ModelError(
            f"training.gradient_checkpointing: true, and {name} has no layers that could be "
            "computed twice; set it to false"
        )
    for model in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # the name that all versions have
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=settings)
        model.disable_input_require_grads()  # layers need no gradient of what they read


@contextmanager
def _as_before(
    dropout: AbstractContextManager[None], adapters: Sequence[tuple[AdapterBank, str | None]]
) -> Iterator[None]:
    """Compute a layer again with the dropout and the adapters of the first time."""
    with ExitStack() as stack:
        stack.enter_context(dropout)
        for bank, task in adapters:
            stack.enter_context(bank.using(task))
        yield


def _pretrained_models(module: nn.Module) -> Iterator[Any]:
    """The outermost ones."""
    from transformers import PreTrainedModel

    if isinstance(module, PreTrainedModel):
        yield module
        return
    for child in module.children():
        yield from _pretrained_models(child)
