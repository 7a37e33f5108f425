"""The device lease: real processes, fake devices."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tasktransfer.training.device import device_pool, lease

HOLDER = """
import sys, time
from pathlib import Path
from tasktransfer.training.device import device_pool, lease
name, seconds, log = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
with lease(device_pool()) as device:
    with log.open("a") as out:
        out.write(f"{time.time()} start {device} {name}\\n")
    time.sleep(seconds)
    with log.open("a") as out:
        out.write(f"{time.time()} end {device} {name}\\n")
"""


def start(tmp_path: Path, name: str, seconds: float, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, name, str(seconds), str(tmp_path / "log")],
        env={
            **os.environ,
            "CUDA_VISIBLE_DEVICES": "0,1",
            "TASKTRANSFER_LOCKS": str(tmp_path / "locks"),
            **environment,
        },
    )


def most_at_once(log: Path) -> dict[str, int]:
    """Per device, the largest number of holders at one time."""
    held: dict[str, int] = {}
    most: dict[str, int] = {}
    for line in sorted(log.read_text().splitlines(), key=lambda row: float(row.split()[0])):
        _, event, device, _ = line.split()
        held[device] = held.get(device, 0) + (1 if event == "start" else -1)
        most[device] = max(most.get(device, 0), held[device])
    return most


def test_more_jobs_than_devices_wait_in_turn_and_none_overlap(tmp_path: Path) -> None:
    jobs = [start(tmp_path, str(i), 0.1) for i in range(8)]
    assert [job.wait(60) for job in jobs] == [0] * 8
    assert most_at_once(tmp_path / "log") == {"0": 1, "1": 1}


def test_slots_share_a_device_only_when_asked(tmp_path: Path) -> None:
    extra = {"CUDA_VISIBLE_DEVICES": "0", "TASKTRANSFER_SLOTS_PER_GPU": "2"}
    jobs = [start(tmp_path, str(i), 0.5, **extra) for i in range(4)]
    assert [job.wait(60) for job in jobs] == [0] * 4
    assert most_at_once(tmp_path / "log") == {"0": 2}


def test_a_killed_holder_frees_its_device(tmp_path: Path) -> None:
    extra = {"CUDA_VISIBLE_DEVICES": "7"}
    holder = start(tmp_path, "killed", 600, **extra)
    deadline = time.time() + 30
    while not (tmp_path / "log").exists() and time.time() < deadline:
        time.sleep(0.02)
    holder.send_signal(signal.SIGKILL)
    holder.wait(30)
    assert start(tmp_path, "next", 0, **extra).wait(30) == 0
    assert "end 7 next" in (tmp_path / "log").read_text()


def test_the_lease_is_what_torch_will_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKTRANSFER_LOCKS", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a, GPU-b")
    with lease(device_pool()) as first:
        assert first == "GPU-a"
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-a"


def test_no_device_is_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert device_pool() == []
    with lease([]) as device:
        assert device is None
