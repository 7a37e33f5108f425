"""Fixtures that every tier shares."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from small_models import Loader

# A busy machine is no fault of the code.
settings.register_profile("tasktransfer", deadline=None)
settings.load_profile("tasktransfer")

# Tests run side by side, one thread each: torch's threads would only wait for each other. Before
# anything imports torch.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

SLOWEST_FIRST = (
    "test_planted_truth.py",
    "test_slurm.py",
    "test_faults.py",
    "workflow",
    "fidelity",
    "contract",
)
"""Files and folders whose tests begin first, so that no worker is left alone with a slow
file at the end. (pytest-xdist by itself begins with the files that have most tests: the quickest.)
"""

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the real FETA data and the published tables, beside the project's root."""
    if not (SHARED / "feta").is_dir():
        pytest.skip(f"real data not found: put the FETA release under {SHARED / 'feta'}")
    return SHARED


@pytest.fixture(scope="module", autouse=True)
def _datasets_of_one_file() -> Iterator[None]:
    """A dataset that a study adds stays in the process: other files' tests know nothing of it."""
    from tasktransfer.datasets import DATASETS  # noqa: PLC0415

    before = dict(DATASETS)
    yield
    DATASETS.clear()
    DATASETS.update(before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow files first; within a file, and among the rest, the order stays."""
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    names = (item.path.name, item.path.parent.name)
    return next((n for n, slow in enumerate(SLOWEST_FIRST) if slow in names), len(SLOWEST_FIRST))


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
