"""Reading of weights files that were written by this package's trainings."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from tasktransfer.errors import ModelError


def read_weights(file: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file on the CPU.

    Raises:
        ModelError: the file is truncated or otherwise damaged, or contains NaN or infinite numbers.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        weights = load_file(file)
    except (OSError, ValueError, SafetensorError) as error:
        if not file.exists():
            raise ModelError(
                f"{file}: The file does not exist. {_describe_remedy(file)}."
            ) from error
        raise ModelError(
            f"{file}: The file of {file.stat().st_size:,} bytes is damaged ({error}). "
            f"{_describe_remedy(file)}."
        ) from error
    bad = [n for n, w in weights.items() if w.is_floating_point() and not torch.isfinite(w).all()]
    if bad:
        raise ModelError(
            f"{file}: The weights {bad[0]} are NaN or infinite, because the file is damaged, "
            f"or the training that wrote it diverged. {_describe_remedy(file)}."
        )
    return weights


def _describe_remedy(file: Path) -> str:
    return f"Copy {file.parent} again, or run the training that wrote it again"
