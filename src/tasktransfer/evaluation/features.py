"""Features of fits: a model's representations of texts, computed on this process's device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tasktransfer.core.specs import ModelSpec
from tasktransfer.models.representation import (
    BATCH_SIZE,
    Pooling,
    compute_layer_representations,
    compute_representations,
)
from tasktransfer.training.hardware import Hardware
from tasktransfer.training.memory import TokenBudget


def compute_features(
    checkpoint: Path,
    tokenizer: Path,
    model: ModelSpec,
    texts: Sequence[str],
    pooling: Any,
    hardware: Hardware,
    revision: str | None = None,
) -> npt.NDArray[np.float64]:
    """Compute a model's pooled representation of each text, (texts, hidden size).

    They are always computed in float32, regardless of ``training.precision``, so that classifiers
    are fitted on unrounded features.

    Args:
        revision: revision of a checkpoint that is a name on the hub.

    Raises:
        ModelError: the checkpoint or its tokenizer cannot be loaded.
        MemoryShortageError: not even one text at a time fits into memory.
    """
    device = hardware.prepare_device()
    budget = TokenBudget(BATCH_SIZE * model.max_length, "representation")

    def compute_within(tokens: int) -> npt.NDArray[np.float64]:
        together = max(1, tokens // model.max_length)
        return compute_representations(
            checkpoint,
            tokenizer,
            model.family,
            texts,
            model.max_length,
            pooling,
            revision,
            device=device,
            together=together,
            adapter=model.adapter,
        )

    return budget.run_within_memory(compute_within, undo=lambda: None)


def compute_layer_features(
    checkpoint: Path,
    model: ModelSpec,
    texts: Sequence[str],
    pooling: Pooling,
    layers: Sequence[int],
    hardware: Hardware,
    revision: str | None = None,
) -> npt.NDArray[np.float32]:
    """Compute the features of several layers in one pass, (layers, texts, hidden size).

    Raises:
        ModelError: the checkpoint or its tokenizer cannot be loaded, or a layer does not exist.
        MemoryShortageError: not even one text at a time fits into memory.
    """
    device = hardware.prepare_device()
    budget = TokenBudget(BATCH_SIZE * model.max_length, "representation")

    def compute_within(tokens: int) -> npt.NDArray[np.float32]:
        return compute_layer_representations(
            checkpoint,
            checkpoint,
            model.family,
            texts,
            model.max_length,
            pooling,
            layers,
            revision,
            device=device,
            together=max(1, tokens // model.max_length),
        )

    return budget.run_within_memory(compute_within, undo=lambda: None)
