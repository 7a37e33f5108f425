"""Fixtures of the unit tier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from small_models import Loader


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Loader:
    """Small models on a hand-made release; see ``small_models.loader``."""
    # Imported here: most unit tests need no torch.
    from small_models import loader  # noqa: PLC0415

    return loader(tmp_path_factory.mktemp("models"))
