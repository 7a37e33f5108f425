"""A small real study on a real Slurm that loses jobs and nodes. Run by hand so far:

pytest -n0 -s tests/workflow/by_hand_slurm.py
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chaos
import pytest
import slurm_cluster
from chaos import ROOT
from slurm_cluster import Cluster
from test_faults import NOTHING, TRAININGS, base, calm

__all__ = ["base", "calm"]


@pytest.fixture(scope="module")
def calm_twice(base: Path, calm: Path) -> Path:
    """The study of two seeds; the first one's trainings are there already."""
    folder = base / "calm-twice"
    shutil.copytree(calm, folder)
    chaos.undisturbed(folder, base / "two.yaml")
    return folder


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Cluster]:
    missing = slurm_cluster.missing_programs()
    if missing:
        pytest.skip(
            f"no Slurm here ({', '.join(missing)}): apt-get install slurmctld slurmd slurm-client"
        )
    with slurm_cluster.cluster(tmp_path / "cluster") as made:
        yield made


def wait_for(what: Callable[[], Any], seconds: float, running: subprocess.Popen[Any]) -> Any:
    """The first true value of ``what``, asked for as long as a process runs."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = what()
        if found or running.poll() is not None:
            return found
        time.sleep(0.2)
    raise AssertionError(f"not within {seconds} seconds: {what}")


def devices(folder: Path) -> list[str]:
    """The devices that trainings held, as their claims say."""
    claims = folder.rglob("stages/**/.claim")
    return sorted(json.loads(path.read_text())["device"] for path in claims)


def test_jobs_of_the_slurm_profile_survive_kills_and_a_lost_node(
    base: Path, calm: Path, slurm: Cluster
) -> None:
    folder = base / "slurm"
    folder.mkdir()
    began = time.monotonic()
    command = [
        *(sys.executable, "-m", "snakemake", "trainings", "--snakefile", str(ROOT / "Snakefile")),
        *("--workflow-profile", str(ROOT / "workflow" / "profiles" / "slurm")),
        *("--default-resources", "slurm_account=none", "--jobs", "8", "--latency-wait", "5"),
        # A test cannot wait as long as a cluster's users.
        *("--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "2"),
        *("--directory", str(folder), "--configfile", str(base / "one.yaml")),
    ]
    with (folder / "snakemake.log").open("wb") as log:
        running = subprocess.Popen(
            command, env=slurm.environment | chaos.environment(folder) | {"PATH": slurm.path},
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            happened = _disturb(slurm, running)
            assert running.wait(420) == 0, (folder / "snakemake.log").read_text()[-6000:]
        finally:
            running.kill()
    seconds = time.monotonic() - began
    chaos.undisturbed(folder, base / "one.yaml")
    assert chaos.verdict(folder, calm) == NOTHING
    assert chaos.attempts(folder)["finished"] == TRAININGS
    held = devices(folder)
    assert set(held) <= {"0", "1"}  # what Slurm gave, not "cpu"
    print(f"slurm profile: {happened}, devices {held}, {seconds:.0f} s")


def _disturb(slurm: Cluster, running: subprocess.Popen[Any]) -> dict[str, str]:
    """Cancel a job, kill a training, drain a node and lose the other one."""
    training = wait_for(slurm.training_jobs, 240, running)
    cancelled = next(iter(training))
    slurm.call("scancel", cancelled)
    killed = wait_for(
        lambda: [pid for pid in slurm.trainings() if slurm.job_of(pid) != cancelled], 120, running
    )
    os.kill(killed[0], signal.SIGKILL)
    others = wait_for(
        lambda: [job for job in slurm.training_jobs() if job != cancelled], 120, running
    )
    lost = slurm.node_of(others[0])
    kept = {"n1": "n2", "n2": "n1"}[lost]
    slurm.drain(kept)
    slurm.lose(lost)
    wait_for(lambda: slurm.state_of(lost).startswith("down"), 60, running)
    slurm.call("scontrol", "update", f"nodename={kept}", "state=resume")
    return {"cancelled": cancelled, "killed": str(killed[0]), "lost": lost, "drained": kept}


def test_pilots_side_by_side_survive_kills_and_a_lost_node(
    base: Path, calm_twice: Path, slurm: Cluster
) -> None:
    folder = base / "pilot"
    folder.mkdir()
    began = time.monotonic()
    environment = slurm.environment | chaos.environment(folder) | {"PATH": slurm.path}
    # Where the scripts are written is where the jobs run: a checkout, or a folder like this one.
    (folder / "Snakefile").symlink_to(ROOT / "Snakefile")
    (folder / "workflow").symlink_to(ROOT / "workflow")
    (folder / "profiles").symlink_to(ROOT / "profiles")
    words = ["pilot", "--config", str(base / "two.yaml"), "--gpus", "2", "--cpus", "2"]
    words += ["--memory", "4G", "--time", "30", "--submit"]
    command = [sys.executable, "-m", "tasktransfer", *words]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": job ") == 4  # prepare, two shards, finish
    waiting = subprocess.Popen(["sleep", "900"])
    try:
        happened = _disturb_pilots(slurm, waiting)
        wait_for(lambda: not slurm.jobs(), 600, waiting)
    finally:
        waiting.kill()
    seconds = time.monotonic() - began
    logs = "\n".join(path.read_text()[-2000:] for path in folder.rglob("pilot/*.log"))
    chaos.undisturbed(folder, base / "two.yaml")
    assert chaos.verdict(folder, calm_twice) == NOTHING, logs
    assert chaos.attempts(folder)["finished"] == 2 * TRAININGS
    held = devices(folder)
    assert set(held) <= {"0", "1"}
    print(f"pilot: {happened}, devices {held}, {seconds:.0f} s")


def _disturb_pilots(slurm: Cluster, running: subprocess.Popen[Any]) -> dict[str, str]:
    """Kill a training of a pilot, then lose the node of one: Slurm queues it again."""
    killed = wait_for(slurm.trainings, 240, running)[0]
    os.kill(killed, signal.SIGKILL)
    job = slurm.job_of(wait_for(slurm.trainings, 60, running)[0])
    lost = slurm.node_of(job)
    slurm.lose(lost)
    wait_for(lambda: slurm.state_of(lost).startswith("down"), 60, running)
    # Slurm lets a job of a lost node wait for two minutes; a test does not.
    slurm.call("scontrol", "update", f"jobid={job}", "starttime=now")
    return {"killed": str(killed), "job": job, "lost": lost}
