"""Validation of files from ``tasktransfer export`` with the validator of Every Eval Ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

VALIDATOR = Path(sys.prefix, "every-eval-ever")
"""Folder in which `make` installs it, because it needs Python 3.12 and unrelated packages."""


def validated(folder: Path) -> tuple[int, list[dict[str, Any]]]:
    """Run the validator, and return its exit code and results.

    The exit code is 0 if there is no error and no warning. There is one result per file below
    ``data/``, covering its path and its companion file.
    """
    if not VALIDATOR.is_dir():
        pytest.skip("no validator of every-eval-ever here: `make unit` installs it")
    names = sorted(str(file.relative_to(folder)) for file in folder.glob("data/*/*/*/*.json*"))
    done = subprocess.run(
        [sys.executable, "-m", "every_eval_ever.validate", "--format", "json", *names],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(VALIDATOR)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)
