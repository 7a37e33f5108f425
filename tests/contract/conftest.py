"""A finished study of each design, brought once per test run and copied for each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from contract_studies import compute_study, show_study

from tasktransfer.designs import open_study
from tasktransfer.files.locks import lock_path
from tasktransfer.results.study import Study

CONFIG = "study.yaml"
Finished = Callable[[str], Path]
"""Name of a study → read-only folder with its config and its results."""


@pytest.fixture(scope="session")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of finished studies."""
    base = tmp_path_factory.getbasetemp()
    # With pytest-xdist, all worker processes share this folder.
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "contract"


@pytest.fixture(scope="session")
def recorded(studies: Path) -> Finished:
    """Return a function that computes a study's records."""
    return lambda name: make_once(studies / "records" / name, lambda to: compute_study(name, to))


@pytest.fixture(scope="session")
def finished(studies: Path, recorded: Finished) -> Finished:
    """Return a function that computes a study's records, tables and figures."""

    def show(name: str, folder: Path) -> None:
        shutil.copytree(recorded(name), folder, dirs_exist_ok=True)
        show_study(folder)

    return lambda name: make_once(studies / "shown" / name, lambda to: show(name, to))


def make_once(folder: Path, make: Callable[[Path], object]) -> Path:
    """Return a folder, made by the first process that needs it."""
    with lock_path(folder, print):
        if not folder.exists():
            part = folder.with_name(f"{folder.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            make(part)
            part.rename(folder)
    return folder


@pytest.fixture
def study(
    design: str, finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Study]:
    """Copy the design's finished study into the working directory."""
    yield from copy_study(finished(design), tmp_path, monkeypatch)


@pytest.fixture
def records(
    design: str, recorded: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Study]:
    """Copy the design's study, which has records but no tables, into the working directory."""
    yield from copy_study(recorded(design), tmp_path, monkeypatch)


def copy_study(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Study]:
    """Yield a copy of a study in the working directory, and delete it afterwards."""
    folder = tmp_path / "study"
    shutil.copytree(source, folder)
    monkeypatch.chdir(folder)
    yield open_study(CONFIG)
    monkeypatch.undo()
    shutil.rmtree(folder)  # otherwise hundreds of copies of hundreds of files would pile up
