"""``tasktransfer run`` with real Snakemake: a study, a repeated run, and a failing study."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import chaos
import pytest
import yaml
from dag_study import Sandbox, trained


def run(study: Sandbox, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from tasktransfer import cli; sys.exit(cli.main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, "run", "study.yaml", "--cores", "2", *words],
        cwd=study.folder,
        env=study.environment(**environment),
        capture_output=True,
        text=True,
        check=False,
    )


def test_run_resumes_and_names_the_files(study: Sandbox) -> None:
    record, *_ = study.paths("baseline", "metrics.json")
    record.unlink()
    (study.folder / "asked.log").unlink()
    done = run(study)
    assert done.returncode == 0, done.stderr
    assert "report:  results/report.html" in done.stdout
    first, *_, last = done.stderr.splitlines()
    assert first.startswith("forecast: ") and first.endswith("(`tasktransfer plan` shows details)")
    assert last.startswith("took ") and "h; forecast " in last
    assert "Select jobs to execute" not in done.stdout + done.stderr
    assert len(trained(study)) == 1


def test_a_dry_run_and_verbose_show_what_snakemake_prints(study: Sandbox) -> None:
    done = run(study, "--", "-n")
    assert done.returncode == 0
    assert "Nothing to be done" in done.stdout + done.stderr


def test_a_failed_job_is_named_with_its_log(study: Sandbox) -> None:
    record, *_ = study.paths("baseline", "metrics.json")
    record.unlink()
    done = run(study, FAKE_FAIL="/stages/")
    assert done.returncode == 1
    assert "baseline: " in done.stderr
    assert "train.log" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("start", (["env"], ["sh", "-c", "trap '' INT; exec \"$@\"", "-"]))
def test_sigterm_ends_snakemake_and_its_trainings(tmp_path: Path, start: list[str]) -> None:
    """A background process of a shell script ignores SIGINT."""
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(chaos.SMALL_STUDY))
    command = [*start, sys.executable, "-m", "tasktransfer", "run", "study.yaml", "--cores", "2"]
    with subprocess.Popen(command, cwd=tmp_path, env=chaos.environment(tmp_path)) as running:
        deadline = time.monotonic() + 300
        while not list(tmp_path.glob("results/stages/**/metrics.json")):
            assert running.poll() is None and time.monotonic() < deadline
            time.sleep(0.2)
        running.terminate()
        assert running.wait(60) == 130
    assert not (tmp_path / "results" / "report.html").exists()
    assert chaos.left_behind(tmp_path) == []
