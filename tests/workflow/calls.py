"""Calls of Snakemake and of Python modules on the study in a folder, which must succeed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from forked_snakemake import run_snakemake

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "HF_HUB_OFFLINE": "1",
}


def call(folder: Path, *words: str) -> str:
    """Run Snakemake or a Python module, which must succeed, and return its output."""
    if words[0] == "snakemake":
        done = run_snakemake(words[1:], folder, ENVIRONMENT)
    else:
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=folder,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
    return require_success(done, folder)


def require_success(done: subprocess.CompletedProcess[str], folder: Path) -> str:
    """Return a process's output, or fail with the logs in the folder."""
    logs = "\n".join(log.read_text()[-1500:] for log in folder.rglob("results/**/*.log"))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:] + logs[-6000:]
    return done.stdout + done.stderr


def snakemake_words(*words: str) -> tuple[str, ...]:
    """Return a call of Snakemake on the study in the current folder."""
    return (
        *("snakemake", *words, "--snakefile", str(ROOT / "Snakefile"), "--cores", "2"),
        *("--workflow-profile", str(ROOT / "profiles" / "default")),
        *("--max-jobs-per-timespan", "100/1s"),
        *("--configfile", "study.yaml"),
    )


def snakemake(folder: Path, *words: str) -> str:
    """Run Snakemake on the study in a folder, and return its output."""
    return call(folder, *snakemake_words(*words))
