"""Limits of a shell, and an impossible `--out`: a message and one of our exit codes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasktransfer import cli
from tasktransfer.errors import (
    LEAST_MEMORY_MB,
    MemoryShortageError,
    ModelError,
    as_fixable_error,
    as_memory_shortage,
)

DEMO = str(Path(__file__).resolve().parents[2] / "workflow" / "presets" / "demo.yaml")


@pytest.mark.parametrize(
    ("error", "part"),
    [
        (OSError(errno.EFBIG, os.strerror(errno.EFBIG)), "ulimit -f unlimited"),
        (RuntimeError(f"writer: {os.strerror(errno.EFBIG)} (os error 27)"), "ulimit -f"),
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE), "a.json"), "a.json: .*ulimit -n"),
        (FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), "out"), "out: .*another path"),
        (MemoryError(), "out of memory"),
        (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), "out of memory"),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), "out of memory"),
        (RuntimeError("can't start new thread"), "out of memory"),
    ],
)
def test_what_a_person_can_mend(error: Exception, part: str) -> None:
    known = as_fixable_error(error)
    assert known is not None
    with pytest.raises(type(known), match=part):
        raise known
    assert known.exit_code in (7, 8)


def test_a_bug_stays_a_bug() -> None:
    for error in (KeyError("seed"), ImportError("No module named 'torch'"), OSError("odd")):
        assert as_fixable_error(error) is None


def test_a_library_may_call_it_something_else() -> None:
    lack = ImportError("libarrow.so: failed to map segment from shared object")
    told = ModelError("cannot load 'bert' as encoder")
    told.__cause__ = ImportError("Unable to import required dependency numpy")
    told.__cause__.__context__ = lack
    assert isinstance(as_memory_shortage(told), MemoryShortageError)


def limited(command: str, shell: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"{shell}; exec {sys.executable} -m tasktransfer {command}"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_too_little_memory_is_reported_before_a_library_aborts(tmp_path: Path) -> None:
    where = f"--config {DEMO} --set results={tmp_path}/results"
    done = limited(f"collect {where}", f"ulimit -v {300 * 1024}")
    assert done.returncode == 8
    text = f"needs {LEAST_MEMORY_MB:,} MB. Raise this shell's limit of 300 MB"
    assert text in done.stderr
    assert limited(f"validate {where}", f"ulimit -v {300 * 1024}").returncode == 0


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    done = limited(f"world --out {tmp_path}/world --dialogues 120", "ulimit -f 2")
    assert done.returncode == 7
    assert "ulimit -f unlimited" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        "world --out {file}",
        "data prepare --dataset Friends --out {file}",
        "data stats --out {file}",
        "tiny-model --model m --out {file}",
        "encode --dataset Friends --model m --out {file}/below",
        "leaderboard . --data . --out {file}",
        "pilot --out {file}",
        "submit --dataset Friends --model m --out {folder}",
        "score x --data d --json {folder}",
    ],
)
def test_out_is_a_folder_or_a_file(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(SystemExit, match="2"):
        cli.main(command.format(file=file, folder=tmp_path).split())
    message = (
        f"{tmp_path} is a folder. Choose a file."
        if "{folder}" in command
        else f"--out: {file} is a file. Choose a folder."
    )
    assert message in capsys.readouterr().err
