"""The commit in a record is that of the package's checkout, read without its git configuration."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tasktransfer.results import provenance


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Write a checkout with one commit, whose configuration would write ``canary``."""

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)

    git("init")
    (tmp_path / "file").write_text("text")
    git("add", ".")
    git("-c", "user.name=Ada", "-c", "user.email=a@b.c", "commit", "-m", "first")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'canary'}\n")
    program.chmod(0o755)
    git("config", "core.fsmonitor", str(program))
    return tmp_path


def installed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Pretend that the package is in a folder."""
    monkeypatch.setattr(provenance, "__file__", str(folder / "results" / "provenance.py"))


def test_the_own_checkout_is_asked(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, checkout / "src" / "tasktransfer")
    commit, dirty = provenance.read_commit()
    assert commit is not None
    assert (len(commit), dirty) == (40, False)
    (checkout / "file").write_text("another")
    assert provenance.read_commit() == (commit, True)
    assert not (checkout / "canary").exists()


def test_a_checkout_around_an_installation_is_not(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A virtual environment inside another repository."""
    installed(monkeypatch, checkout / ".venv/lib/python3.11/site-packages/tasktransfer")
    assert provenance.read_commit() == (None, None)


def test_the_variables_of_another_git_do_not_matter(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study that a git hook starts has them."""
    installed(monkeypatch, checkout / "src" / "tasktransfer")
    before = provenance.read_commit()
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert provenance.read_commit() == before
