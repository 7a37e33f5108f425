"""Gradient checkpointing: layers are recomputed in the backward pass instead of stored.

Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"; transformers defines the layers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from torch import nn

from tasktransfer.errors import ModelError
from tasktransfer.layers.dropout import create_repeatable_dropout
from tasktransfer.models.adapters import AdapterBank


def enable_gradient_checkpointing(module: nn.Module, name: str) -> None:
    """Enable gradient checkpointing in all pre-trained models inside a module.

    In training mode the models then store only the inputs of their layers.

    Args:
        name: name of the model in the study, for messages.

    Raises:
        ModelError: there is no pre-trained model, or it does not support gradient checkpointing.
    """
    banks = [part for part in module.modules() if isinstance(part, AdapterBank)]

    def create_contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        now, later = create_repeatable_dropout()
        return now, _restore_forward_state(later, [(bank, bank.task) for bank in banks])

    settings = {"use_reentrant": False, "context_fn": create_contexts}
    models = list(_iterate_pretrained_models(module))
    if not models or not all(model.supports_gradient_checkpointing for model in models):
        raise ModelError(
            f"training.gradient_checkpointing: The value is true, but {name} does not support "
            "it. Set it to false."
        )
    for model in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # works in all versions
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=settings)
        model.disable_input_require_grads()  # layers need no gradient of their inputs


@contextmanager
def _restore_forward_state(
    dropout: AbstractContextManager[None], adapters: Sequence[tuple[AdapterBank, str | None]]
) -> Iterator[None]:
    """Restore the dropout and adapters of the forward pass while a layer is recomputed."""
    with ExitStack() as stack:
        stack.enter_context(dropout)
        for bank, task in adapters:
            stack.enter_context(bank.use_task(task))
        yield


def _iterate_pretrained_models(module: nn.Module) -> Iterator[Any]:
    """Yield the outermost pre-trained models in a module."""
    from transformers import PreTrainedModel

    if isinstance(module, PreTrainedModel):
        yield module
        return
    for child in module.children():
        yield from _iterate_pretrained_models(child)
