"""`snakemake -n` with a few of the configs that the quick test opens like the workflow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hostile_configs import MEBIBYTES, SECONDS, Case, cases
from tasktransfer.datasets.multiwoz.tiny_world import generate_release

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("results", "null as a key")
NAMES = (
    *QUICK,
    "checkpoints.keep",
    "few_shot.draws",
    "evaluation.decoding.groups",
    "too many snapshots",
)
CASES = [next(case for case in cases() if name in case.name) for name in NAMES]
MEASURED = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stderr=subprocess.STDOUT)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("used", code, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""
"""Script that runs its arguments from a small process.

A process inherits the peak memory of its parent, and the test process may have loaded torch.
"""


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[] if name in QUICK else [pytest.mark.slow])
        for name, case in zip(NAMES, CASES, strict=True)
    ],
)
def test_a_dry_run_refuses_it(case: Case, tmp_path: Path) -> None:
    generate_release(tmp_path / "world", dialogues=24)
    (tmp_path / "study.yaml").write_text(case.text)
    done = subprocess.run(
        [
            *(sys.executable, "-c", MEASURED),
            *(sys.executable, "-m", "snakemake", "-n", "--cores", "1"),
            *("--workflow-profile", ROOT / "profiles" / "default"),
            *("--snakefile", ROOT / "Snakefile", "--configfile", "study.yaml"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    *_, (_, code, seconds, mebibytes) = (line.split() for line in done.stdout.splitlines())
    assert code == "1"
    assert "Traceback" not in done.stdout
    for part in ("study.yaml", *case.named):
        assert part in done.stdout
    assert float(seconds) < SECONDS
    assert float(mebibytes) < MEBIBYTES
