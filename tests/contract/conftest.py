"""A finished study of each design, computed once per test run and copied for each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from contract_studies import make_study

from tasktransfer.designs import open_study
from tasktransfer.files.locks import lock_path
from tasktransfer.results.study import Study

CONFIG = "study.yaml"
Finished = Callable[[str], Path]


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Return name of a study → read-only folder with its config and all its results."""
    base = tmp_path_factory.getbasetemp()
    # With pytest-xdist, all worker processes share this folder.
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "contract"

    def made(name: str) -> Path:
        folder = shared / name
        with lock_path(folder, print):
            if not folder.exists():
                part = folder.with_name(f"{name}.part")
                shutil.rmtree(part, ignore_errors=True)
                part.mkdir(parents=True)
                make_study(name, part)
                part.rename(folder)
        return folder

    return made


@pytest.fixture
def study(
    design: str, finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Study]:
    """Copy the design's finished study into the working directory."""
    folder = tmp_path / "study"
    shutil.copytree(finished(design), folder)
    monkeypatch.chdir(folder)
    yield open_study(CONFIG)
    monkeypatch.undo()
    shutil.rmtree(folder)  # otherwise hundreds of copies of hundreds of files would pile up
