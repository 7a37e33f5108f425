"""The wheel: its content, and the demo from it in an environment without a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def call(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    options = ("--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", out)
    done = call(sys.executable, "-m", "pip", "wheel", *options, source(out), folder=out)
    assert done.returncode == 0, done.stderr
    (made,) = out.glob("*.whl")
    return made


def source(out: Path) -> Path:
    """Copy the sources of a wheel into a folder in which building may leave files."""
    copy = out / "source"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for room in ("src", "workflow", "envs"):
        shutil.copytree(ROOT / room, copy / room, symlinks=True, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    return copy


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel's `tasktransfer` in an environment that shares the other packages."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    options = ("--no-deps", "--quiet", "--no-index", wheel)
    done = call(sys.executable, "-m", "pip", "--python", python, "install", *options, folder=folder)
    assert done.returncode == 0, done.stderr
    own = Path(call(python, "-c", PURELIB, folder=folder).stdout.strip())
    (own / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder / "bin" / "tasktransfer"


PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"


def test_the_wheel_holds_the_workflow(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    files = [
        path.relative_to(ROOT)
        for room in ("workflow", "envs")
        for path in (ROOT / room).rglob("*")
        if path.is_file()
    ]
    assert len(files) > 30
    assert [str(file) for file in files if f"tasktransfer/{file}" not in names] == []


def test_the_demo_of_the_wheel(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    done = call(program, "demo", "--folder", "new", "--dry-run", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "baseline" in done.stdout + done.stderr
    # By itself, as a user goes on with it: with the profile, and with a target of one's own.
    python = program.parent / "python"
    said = call(python, "-m", "snakemake", "figures", "--dry-run", "--cores", "1", folder=folder)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "profiles/default" in said.stdout + said.stderr
    # Existing files are left alone.
    again = call(program, "demo", "--folder", "new", "--dry-run", folder=tmp_path)
    assert again.returncode == 2
    assert "new: The folder is not empty" in again.stderr
