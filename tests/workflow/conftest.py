"""Fixtures of the finished small study with which tests of Snakemake's decisions start."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from dag_study import Sandbox, sandbox


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the small study once to the end."""
    made = sandbox(tmp_path_factory.mktemp("dag") / "finished")
    made.write()
    assert made.run() == {"baseline": 2, "multitask": 1, "finetune": 4, "collect": 1}
    return made.folder


@pytest.fixture
def study(finished: Path, tmp_path: Path) -> Iterator[Sandbox]:
    """Copy the finished study, including modification times."""
    shutil.copytree(finished, tmp_path / "study", symlinks=True)
    made = Sandbox(tmp_path / "study")
    made.write()
    yield made
