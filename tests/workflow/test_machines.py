"""A study from its data to its report on machines unlike those of developers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from chaos import ROOT, SMALL_STUDY

pytestmark = pytest.mark.slow

STUDY = SMALL_STUDY | {
    "datasets": {"DailyDialog": {"tasks": ["emotion_recognition"]}},
    "algorithms": ["baseline"],
    "training": {"batch_size": 16, "epochs": 1, "limit_train": 32},
    "seeds": 1,
}
FILES_OF_A_STUDY = ("report.html", "tables/scores.parquet", "figures/table1.md")
# Root may write everywhere, unless it gives up this capability.
AS_A_USER = ("setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override")
WITHOUT_NETWORK = ("unshare", "--net")


def run_study(folder: Path, *before: str, checkout: Path = ROOT, **changes: str | None) -> None:
    """Run a study in a folder; None removes a variable of the environment."""
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(checkout / "src"), **changes}
    done = subprocess.run(
        [*before, sys.executable, "-m", "tasktransfer", "run", "study.yaml", "--cores", "2"],
        cwd=folder,
        env={name: value for name, value in environment.items() if value is not None},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert [name for name in FILES_OF_A_STUDY if not (folder / "results" / name).is_file()] == []


def require_program(*words: str) -> None:
    """Skip the test if a command does not work here."""
    if not shutil.which(words[0]) or subprocess.run([*words, "true"], check=False).returncode:
        pytest.skip(f"`{' '.join(words)}` does not work here")


def test_a_folder_with_spaces_and_letters(tmp_path: Path) -> None:
    run_study(tmp_path / "Übung 'eins' & 2")


def test_without_a_home(tmp_path: Path) -> None:
    run_study(tmp_path / "study", HOME=None, XDG_CACHE_HOME=None)


def test_without_a_network(tmp_path: Path) -> None:
    require_program(*WITHOUT_NETWORK)
    run_study(tmp_path / "study", *WITHOUT_NETWORK, HF_HUB_OFFLINE=None)


def test_a_checkout_that_cannot_be_written(tmp_path: Path) -> None:
    user = AS_A_USER if os.getuid() == 0 else ()
    require_program(*user, "env")
    checkout = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("src", "workflow", "envs"):
        shutil.copytree(ROOT / name, checkout / name, symlinks=True, ignore=ignored)
    for path in [*checkout.rglob("*"), checkout]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)
    run_study(tmp_path / "study", *user, checkout=checkout)
    assert not [*checkout.rglob("__pycache__")]
