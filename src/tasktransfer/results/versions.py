"""What made a record: versions of packages, and the commit of the code."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "pyarrow", "datasets")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers may depend on."""
    installed = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def commit() -> tuple[str | None, bool | None]:
    """(commit, uncommitted changes) of the checkout that the code runs from; None outside one."""
    folder = Path(__file__).resolve().parent
    head = _git(folder, "rev-parse", "HEAD")
    if not head:
        return None, None
    # Files that git does not track (results, notes) make no difference to the code.
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return head, None if changed is None else bool(changed)


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
