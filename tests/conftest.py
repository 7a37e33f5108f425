"""Fixtures that every tier shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no fault of the code.
settings.register_profile("tasktransfer", deadline=None)
settings.load_profile("tasktransfer")

# Tests run side by side, one thread each: torch's threads would only wait for each other. Before
# anything imports torch.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the real FETA data and the published tables, beside the project's root."""
    if not (SHARED / "feta").is_dir():
        pytest.skip(f"real data not found: put the FETA release under {SHARED / 'feta'}")
    return SHARED
