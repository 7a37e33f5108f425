"""A small real study on a real Slurm that loses jobs and nodes, with unchanged results.

To see its statistics, run `pytest -n0 -s tests/workflow/test_slurm.py`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chaos
import pytest
import slurm_cluster
import yaml
from chaos import NOTHING, ROOT
from slurm_cluster import Cluster
from slurm_watch import Training, Watch, trainings

STUDY = chaos.SMALL_STUDY | {"study": "slurm", "algorithms": ["pretrain_finetune"]}
TRAININGS = 4
"""Trainings of one seed: two baselines, which are also sources, and a fine-tuning from each."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(slurm_cluster.missing_programs()),
        reason=f"no Slurm here ({', '.join(slurm_cluster.missing_programs())} missing): "
        f"apt-get install {slurm_cluster.PACKAGES}, or make system",
    ),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a folder with a study of one seed and a study of two seeds."""
    folder = tmp_path_factory.mktemp("slurm")
    for name, seeds in (("one", 1), ("two", 2)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(STUDY | {"seeds": seeds}))
    return folder


@pytest.fixture(scope="module")
def calm(base: Path) -> Path:
    """Run the part of the one-seed study that is compared, without disturbance."""
    chaos.undisturbed(base / "calm", base / "one.yaml", "tables")
    return base / "calm"


@pytest.fixture(scope="module")
def calm_twice(base: Path, calm: Path) -> Path:
    """Run the study of two seeds, in which the first seed's trainings already exist."""
    folder = base / "calm-twice"
    shutil.copytree(calm, folder)
    chaos.undisturbed(folder, base / "two.yaml", "tables")
    return folder


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Cluster]:
    with slurm_cluster.cluster(tmp_path / "cluster") as made:
        yield made
    assert not [pid for pid in made.processes() if Path(f"/proc/{pid}/exe").exists()]


def wait_for(what: Callable[[], Any], seconds: float = 240) -> Any:
    """Wait for the first true value of ``what``, and return it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.2)
    raise AssertionError(f"not within {seconds} seconds")


def test_jobs_of_the_slurm_profile_survive_kills_and_a_lost_node(
    base: Path, calm: Path, slurm: Cluster
) -> None:
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        pytest.skip("no executor plugin: pip install snakemake-executor-plugin-slurm")
    folder = base / "profile"
    # Inputs of trainings are prepared here; the pilots test that jobs prepare them.
    for name in ("data", "models"):
        shutil.copytree(calm / "results" / name, folder / "results" / name)
    began = time.monotonic()
    with Watch(slurm, folder) as watch, _controller(folder, base / "one.yaml", slurm) as controller:
        happened = _disturb_jobs(slurm, folder)
        assert controller.wait(600) == 0, _tail(folder)
    seconds = time.monotonic() - began
    log = (folder / "snakemake.log").read_text()
    assert "SLURM status is: 'CANCELLED'" in log
    assert "SLURM status is: 'FAILED'" in log  # the job that kill -9 ended
    submitted = re.findall(r"submitted with SLURM jobid (\d+)", log)
    assert len(submitted) == TRAININGS + 2  # and the two that Snakemake tried again
    assert set(watch.given()) <= {"0", "1"}  # one device each, which Slurm chose
    assert {one.device for one in watch.holders()} == {"0", "1"}
    assert not watch.shared
    chaos.undisturbed(folder, base / "one.yaml", "tables")
    assert chaos.verdict(folder, calm) == NOTHING
    assert chaos.attempts(folder)["finished"] == TRAININGS
    _print("slurm profile", watch, seconds, jobs=len(submitted), **happened)


@contextmanager
def _controller(folder: Path, study: Path, slurm: Cluster) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        *(sys.executable, "-m", "snakemake", "trainings", "--snakefile", str(ROOT / "Snakefile")),
        *("--workflow-profile", str(ROOT / "workflow" / "profiles" / "slurm")),
        *("--default-resources", "slurm_account=none", "--latency-wait", "5"),
        # Shorter waiting times than on a real cluster.
        *("--slurm-init-seconds-before-status-checks", "2"),
        *("--directory", str(folder), "--configfile", str(study)),
    ]
    with (folder / "snakemake.log").open("wb") as log:
        environment = chaos.environment(folder) | slurm.environment
        running = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            yield running
        finally:
            running.kill()
            running.wait()


def _tail(folder: Path) -> str:
    return (folder / "snakemake.log").read_text()[-6000:]


def _disturb_jobs(slurm: Cluster, folder: Path) -> dict[str, Any]:
    """Cancel a job and kill another while their node drains; then lose their next node."""
    first = _two_jobs(slurm, folder)
    drained = first[0].node
    time.sleep(1)  # they train for a moment, and are seen to
    slurm.drain(drained)
    slurm.call("scancel", first[0].job)
    slurm.kill(first[1].job)
    old = {one.job for one in first}
    again = _two_jobs(slurm, folder, old)
    lost = again[0].node
    assert {one.node for one in again} == {lost} != {drained}  # a drained node takes no jobs
    slurm.call("scontrol", "update", f"nodename={drained}", "state=resume")
    time.sleep(1)
    slurm.lose(lost)
    wait_for(lambda: slurm.state_of(lost).startswith("down"))
    return {
        "cancelled": first[0].job,
        "killed": first[1].job,
        "drained": drained,
        "lost": lost,
        "jobs on it": sorted(one.job for one in again),
    }


def _two_jobs(
    slurm: Cluster, folder: Path, others: frozenset[str] | set[str] = frozenset()
) -> list[Training]:
    """Return two trainings of different jobs that hold devices, excluding the other jobs."""

    def look() -> list[Training]:
        found = {
            one.job: one
            for one in trainings(slurm, folder)
            if one.device is not None and one.job not in others
        }
        return list(found.values()) if len(found) >= 2 else []

    return wait_for(look)


def test_pilots_side_by_side_survive_kills_and_a_lost_node(
    base: Path, calm_twice: Path, slurm: Cluster
) -> None:
    folder = base / "pilot"
    folder.mkdir()
    # Pilots run in the folder in which they are submitted: a checkout, or a folder like this.
    for name in ("Snakefile", "workflow", "profiles"):
        (folder / name).symlink_to(ROOT / name)
    began = time.monotonic()
    with Watch(slurm, folder) as watch:
        jobs = _submit(base / "two.yaml", folder, slurm)
        assert list(jobs) == ["prepare", "tiny-bert-seed0", "tiny-bert-seed1", "finish"]
        happened = _disturb_pilots(slurm, folder, jobs)
        wait_for(lambda: not slurm.jobs(), 600)
    seconds = time.monotonic() - began
    logs = "\n".join(path.read_text()[-3000:] for path in folder.rglob("pilot/*.log"))
    assert (folder / "results" / "tables" / "runs.parquet").exists(), logs
    assert set(watch.given()) == {"0,1"}  # Slurm gave two, of which a training holds one
    assert {one.device for one in watch.holders()} == {"0", "1"}
    assert not watch.shared
    assert chaos.verdict(folder, calm_twice) == NOTHING, logs
    assert chaos.attempts(folder)["finished"] == 2 * TRAININGS
    _print("pilots", watch, seconds, jobs=len(jobs), **happened)


def _submit(study: Path, folder: Path, slurm: Cluster) -> dict[str, str]:
    """Submit the scripts, and return script → job id."""
    words = ["pilot", "--config", str(study), "--gpus", "2", "--cpus", "2", "--memory", "4G"]
    done = subprocess.run(
        [sys.executable, "-m", "tasktransfer", *words, "--time", "30", "--submit"],
        env=chaos.environment(folder) | slurm.environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(re.findall(r"^(\S+): job (\d+)", done.stdout, re.MULTILINE))


def _disturb_pilots(slurm: Cluster, folder: Path, jobs: dict[str, str]) -> dict[str, Any]:
    """Kill a training of each pilot, lose one pilot's node, and cancel the other pilot.

    Slurm queues the first pilot again. The second one's remaining work is left to ``finish``.
    """
    shards = [job for name, job in jobs.items() if "seed" in name]

    def of(job: str) -> list[Training]:
        held = [one for one in trainings(slurm, folder) if one.device is not None]
        return [one for one in held if one.job == job]

    killed = [wait_for(lambda job=job: of(job))[0] for job in shards]
    assert len({one.node for one in killed}) == 2  # side by side
    time.sleep(1)  # they train for a moment, and are seen to
    for one in killed:
        os.kill(one.pid, signal.SIGKILL)
    gone = {one.pid for one in killed}
    wait_for(lambda: all([one for one in of(job) if one.pid not in gone] for job in shards))
    time.sleep(1)
    lost = killed[0].node
    slurm.lose(lost)
    slurm.call("scancel", shards[1])
    wait_for(lambda: slurm.state_of(lost).startswith("down"))
    slurm.revive(lost)
    return {"killed in": shards, "lost": lost, "cancelled": shards[1]}


def _print(what: str, watch: Watch, seconds: float, **facts: Any) -> None:
    numbers = {
        **facts,
        "at once": watch.at_once,
        "CUDA_VISIBLE_DEVICES": watch.given(),
        "held": watch.devices(),
        "events": dict(chaos.attempts(watch.folder)),
        "resumed": chaos.resumed(watch.folder),
        "seconds": round(seconds),
    }
    print(f"\n{what}: {json.dumps(numbers)}")
