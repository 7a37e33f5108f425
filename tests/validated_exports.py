"""The validator of Every Eval Ever, on what ``tasktransfer export`` has written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

VALIDATOR = Path(sys.prefix, "every-eval-ever")
"""Where `make` puts it: it asks for Python 3.12 and for much that its validator does not use."""


def validated(folder: Path) -> tuple[int, list[dict[str, Any]]]:
    """Its exit code (0: no error, no warning) and what it says of each file below ``data/``, of its
    place and of its companion."""
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
