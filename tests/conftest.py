"""Fixtures shared by all test tiers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from small_models import Loader

# Slow examples on a busy machine are not a fault of the code.
settings.register_profile("tasktransfer", deadline=None)
settings.load_profile("tasktransfer")

# Tests run in parallel with one thread each, since torch's threads would only wait for each other.
# This must be set before torch is imported.
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
"""Files and folders whose tests start first, so that no worker ends alone with a slow file.

By default, pytest-xdist starts with the files that have most tests, which are the fastest.
"""

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder with the real FETA data and published tables, next to the project root."""
    if not (SHARED / "feta").is_dir():
        pytest.skip(f"real data not found: put the FETA release under {SHARED / 'feta'}")
    return SHARED


@pytest.fixture(scope="session", autouse=True)
def _no_fsync() -> Iterator[None]:
    """Leave out fsync, since no file of a test has to survive a power cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in the test's own folder, and return it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module", autouse=True)
def _datasets_of_one_file() -> Iterator[None]:
    """Remove datasets that studies added to the process, for the sake of other test files."""
    yield from restore_datasets()


@pytest.fixture
def datasets_of_one_test() -> Iterator[None]:
    """Remove datasets that a test added to the process."""
    yield from restore_datasets()


def restore_datasets() -> Iterator[None]:
    """Remove the datasets that were added while a fixture was in use."""
    from tasktransfer.datasets import DATASETS  # noqa: PLC0415

    before = dict(DATASETS)
    yield
    DATASETS.clear()
    DATASETS.update(before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move slow files to the front; the order is otherwise unchanged."""
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    names = (item.path.name, item.path.parent.name)
    return next((n for n, slow in enumerate(SLOWEST_FIRST) if slow in names), len(SLOWEST_FIRST))


@pytest.fixture(scope="session")
def models_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder for models and token ids of ``load``, ``<dataset>-<family>``."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def load(models_folder: Path) -> Loader:
    """Return a loader of small models on a hand-made release; see ``small_models.loader``."""
    # Imported here because most unit tests do not need torch.
    from small_models import loader  # noqa: PLC0415

    return loader(models_folder)


@pytest.fixture
def small(load: Loader, models_folder: Path) -> Path:
    """Return the folder of small models, which ``load`` fills."""
    return models_folder
