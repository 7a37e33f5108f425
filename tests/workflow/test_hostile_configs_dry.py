"""`snakemake -n` on a few of the configs that the quick test opens as the workflow does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostile_configs import MEBIBYTES, SECONDS, Case, cases
from tasktransfer.datasets.multiwoz.tiny_world import generate

ROOT = Path(__file__).resolve().parents[2]
NAMES = (
    "results",
    "checkpoints.keep",
    "few_shot.draws",
    "evaluation.decoding.groups",
    "too many snapshots",
    "null as a key",
)
CASES = [next(case for case in cases() if name in case.name) for name in NAMES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_dry_run_refuses_it(case: Case, tmp_path: Path) -> None:
    generate(tmp_path / "world", dialogues=24)
    (tmp_path / "study.yaml").write_text(case.text)
    told = tmp_path / "told"
    with told.open("w") as stream:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "snakemake", "-n", "--cores", "1"),
                *("--workflow-profile", ROOT / "profiles" / "default"),
                *("--snakefile", ROOT / "Snakefile", "--configfile", "study.yaml"),
            ],
            cwd=tmp_path,
            stdout=stream,
            stderr=stream,
        )
        _, status, used = os.wait4(process.pid, 0)
    said = told.read_text()
    process.returncode = os.waitstatus_to_exitcode(status)  # waited for by hand, for what it used
    assert process.returncode == 1
    assert "Traceback" not in said
    for part in ("study.yaml", *case.named):
        assert part in said
    assert used.ru_utime + used.ru_stime < SECONDS
    assert used.ru_maxrss / 1024 < MEBIBYTES
