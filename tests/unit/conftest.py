"""Fixtures of the unit tier."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from small_models import Loader


@pytest.fixture(scope="session")
def models_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where ``load`` keeps its models and token ids, ``<dataset>-<family>``."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def load(models_folder: Path) -> Loader:
    """Small models on a hand-made release; see ``small_models.loader``."""
    # Imported here: most unit tests need no torch.
    from small_models import loader  # noqa: PLC0415

    return loader(models_folder)
