"""If a log cannot be written, as on a full disk, the cause is printed on the console."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full: not Linux")

PROGRAM = f"{sys.executable} -P -m tasktransfer"
STUDY = """\
study: s
datasets: {DailyDialog: {tasks: [emotion_recognition, dialogue_nli]}}
models: [{name: m, family: encoder, checkpoint: tiny, max_length: 64}]
"""


def run(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a shell line of a workflow's rule, and return what the console shows."""
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "TASKTRANSFER_CONSOLE": "3", **environment},
        stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "study.yaml").write_text(STUDY)
    return tmp_path


def test_an_error_that_the_log_cannot_hold_is_reported_on_the_console(study: Path) -> None:
    seen = run(f"{PROGRAM} plan --config none.yaml 3>&2 > /dev/full 2>&1", study)
    assert (seen.returncode, seen.stdout[:17]) == (2, "error: none.yaml:"), seen.stdout
    assert run(f"{PROGRAM} plan --config none.yaml 3>&2 > log 2>&1", study).stdout == ""
    assert (study / "log").read_text() == seen.stdout


def test_what_was_printed_in_vain_is_an_error_with_the_remedy(study: Path) -> None:
    seen = run(f"{PROGRAM} plan --config study.yaml 3>&2 > /dev/full 2>&1", study)
    assert seen.returncode == 7, seen.stdout
    assert seen.stdout.startswith("error: No space left on device. Free some space")
    assert "Finished results are kept" in seen.stdout


def test_a_log_that_has_reached_the_largest_size_of_files(study: Path) -> None:
    limited = f"ulimit -f 0; {PROGRAM} plan --config study.yaml 3>&2 > log 2>&1"
    seen = run(limited, study)
    assert seen.returncode == 7, seen.stdout
    assert "(ulimit -f unlimited)" in seen.stdout
    assert (study / "log").read_text() == ""


@pytest.mark.parametrize("console", ["", "3", "x"])
def test_without_a_console_the_exit_code_tells(study: Path, console: str) -> None:
    command = f"{PROGRAM} plan --config none.yaml > /dev/full 2>&1"
    seen = run(command, study, TASKTRANSFER_CONSOLE=console)
    assert (seen.returncode, seen.stdout) == (2, "")
