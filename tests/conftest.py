"""Fixtures that every tier shares."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the real FETA data and the published tables, beside the project's root."""
    if not (SHARED / "feta").is_dir():
        pytest.skip(f"real data not found: put the FETA release under {SHARED / 'feta'}")
    return SHARED
