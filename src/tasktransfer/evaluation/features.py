"""The features that a fit learns from: what a model makes of texts, on this process' device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tasktransfer.core.specs import ModelSpec
from tasktransfer.models.representation import TOGETHER, represent
from tasktransfer.training.hardware import Hardware
from tasktransfer.training.memory import TokenBudget


def features(
    checkpoint: Path,
    tokenizer: Path,
    model: ModelSpec,
    texts: Sequence[str],
    pooling: Any,
    hardware: Hardware,
    revision: str | None = None,
) -> npt.NDArray[np.float64]:
    """(texts, hidden size), see ``models.representation``. Computed in float32 whatever
    ``training.precision`` says: what a classifier is fitted on is not rounded. ``revision``: of a
    checkpoint that is a name on the hub.

    Raises:
        ModelError: the checkpoint or its tokenizer cannot be loaded.
        MemoryShortageError: not even one text at a time fits into memory.
    """
    device = hardware.device()
    budget = TokenBudget(TOGETHER * model.max_length, "representation")

    def work(tokens: int) -> npt.NDArray[np.float64]:
        together = max(1, tokens // model.max_length)
        return represent(
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

    return budget.fitting(work, undo=lambda: None)
