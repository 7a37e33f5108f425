"""Features for fits: a model's representations of texts, for every way to compute them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from small_models import Loader
from tasktransfer.core.specs import ModelSpec
from tasktransfer.errors import MemoryShortageError
from tasktransfer.evaluation import features as evaluation
from tasktransfer.evaluation.features import compute_features
from tasktransfer.models.representation import BATCH_SIZE, compute_representations
from tasktransfer.training.hardware import Hardware

MODEL = ModelSpec("small", "encoder", "w1", 200)
TEXTS = [f"I am glad today , {'very ' * (number % 7)}much so" for number in range(40)]


@pytest.fixture
def small(load: Loader, models_folder: Path) -> tuple[Path, Path]:
    """Write a checkpoint and its tokenizer."""
    return models_folder / "encoder", models_folder / "DailyDialog-encoder" / "tokenizer"


def test_they_are_in_float32_whatever_the_precision(small: tuple[Path, Path]) -> None:
    wide, narrow = (compute_features(*small, MODEL, TEXTS, "mean", Hardware(p)) for p in PRECISIONS)
    assert wide.shape == (len(TEXTS), 64)
    assert np.array_equal(wide, narrow)


PRECISIONS: tuple[Any, Any] = ("float32", "bfloat16")


def test_what_does_not_fit_is_read_in_smaller_parts(
    small: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = compute_features(*small, MODEL, TEXTS, "mean", Hardware())
    tried = []

    def of_little_memory(*given: Any, together: int, **more: Any) -> Any:
        tried.append(together)
        if together > 8:
            raise torch.OutOfMemoryError("out of memory")
        return compute_representations(*given, together=together, **more)

    monkeypatch.setattr(evaluation, "compute_representations", of_little_memory)
    assert np.allclose(compute_features(*small, MODEL, TEXTS, "mean", Hardware()), whole, atol=1e-6)
    assert tried == [BATCH_SIZE, BATCH_SIZE // 2, BATCH_SIZE // 4]


def test_where_not_one_text_fits_it_is_said(
    small: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(evaluation, "compute_representations", never)
    with pytest.raises(MemoryShortageError, match="memory is not sufficient for representation"):
        compute_features(*small, MODEL, TEXTS, "mean", Hardware())
