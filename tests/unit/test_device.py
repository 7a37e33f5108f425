"""The device lease: real processes, fake devices."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tasktransfer.errors import ConfigError
from tasktransfer.training.device import BATCH_JOB_VARIABLES, lease_device, list_devices

HOLDER = """
import sys, time
from pathlib import Path
from tasktransfer.training.device import lease_device, list_devices
name, seconds, log = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
with lease_device(list_devices()) as device:
    with log.open("a") as out:
        out.write(f"{time.monotonic()} start {device} {name}\\n")
    time.sleep(seconds)
    with log.open("a") as out:
        out.write(f"{time.monotonic()} end {device} {name}\\n")
"""


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKTRANSFER_LOCKS", str(tmp_path / "locks"))


def start(tmp_path: Path, name: str, seconds: float, **environment: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", HOLDER, name, str(seconds), str(tmp_path / "log")]
    return subprocess.Popen(
        command, env={**os.environ, "CUDA_VISIBLE_DEVICES": "0,1", **environment}
    )


def most_at_once(log: Path) -> dict[str, int]:
    """Return the largest number of simultaneous holders per device."""
    held: dict[str, int] = {}
    most: dict[str, int] = {}
    for line in sorted(log.read_text().splitlines(), key=lambda row: float(row.split()[0])):
        _, event, device, _ = line.split()
        held[device] = held.get(device, 0) + (1 if event == "start" else -1)
        most[device] = max(most.get(device, 0), held[device])
    return most


def test_forty_jobs_on_four_devices_wait_in_turn_and_none_overlap(tmp_path: Path) -> None:
    """Some are killed while they hold a device: it is free at once, and no job waits forever."""
    devices = {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    jobs = [start(tmp_path, str(i), 0.1, **devices) for i in range(36)]
    doomed = [start(tmp_path, f"doomed{i}", 600, **devices) for i in range(4)]
    log = tmp_path / "log"
    deadline = time.time() + 120
    while any(job.poll() is None for job in doomed) and time.time() < deadline:
        holding = log.read_text() if log.exists() else ""
        for number, job in enumerate(doomed):
            if f"doomed{number}" in holding and job.poll() is None:
                killed = time.monotonic()
                job.send_signal(signal.SIGKILL)
                job.wait(30)
                with log.open("a") as out:  # what the dead one cannot say
                    device = holding.split(f" doomed{number}\n")[0].split()[-1]
                    out.write(f"{killed} end {device} doomed{number}\n")
        time.sleep(0.02)
    assert [job.wait(60) for job in jobs] == [0] * 36
    assert most_at_once(log) == dict.fromkeys("0123", 1), log.read_text()


def test_slots_share_a_device_only_when_asked(tmp_path: Path) -> None:
    extra = {"CUDA_VISIBLE_DEVICES": "0", "TASKTRANSFER_SLOTS_PER_GPU": "2"}
    jobs = [start(tmp_path, str(i), 0.5, **extra) for i in range(4)]
    assert [job.wait(60) for job in jobs] == [0] * 4
    assert most_at_once(tmp_path / "log") == {"0": 2}


def test_a_device_is_free_when_its_process_has_ended_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its memory is not free before, and torch takes seconds to end."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    code = f"{HOLDER}print('over', flush=True)\nsys.stdin.read()"
    command = [sys.executable, "-c", code, "lingering", "0", str(tmp_path / "log")]
    lingering = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert lingering.stdout is not None
    assert lingering.stdout.readline() == b"over\n"
    following = start(tmp_path, "following", 0, CUDA_VISIBLE_DEVICES="0")
    with pytest.raises(subprocess.TimeoutExpired):
        following.wait(1.5)
    assert "following" not in (tmp_path / "log").read_text()
    lingering.communicate(timeout=30)
    assert following.wait(30) == 0


def test_a_process_takes_its_device_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with lease_device(list_devices()) as first:
        pass
    with lease_device(list_devices()) as again:
        assert first == again == "0"
        beside = start(tmp_path, "beside", 0, CUDA_VISIBLE_DEVICES="0,1")
        assert beside.wait(30) == 0
    assert "start 1 beside" in (tmp_path / "log").read_text()


def test_no_device_is_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert list_devices() == []
    with lease_device([]) as device:
        assert device is None
        assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


@pytest.fixture
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Provide an nvidia-smi that lists two devices and counts its calls."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho >> {tmp_path}/asked\nprintf 'GPU-a\\nGPU-b\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name in BATCH_JOB_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("two_gpus")
def test_the_choice_is_the_batch_systems_inside_its_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list_devices() == ["GPU-a", "GPU-b"]
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert list_devices() == []  # the job was given none
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert list_devices() == ["1"]


@pytest.mark.usefixtures("two_gpus")
def test_the_gpus_of_a_machine_are_asked_for_once(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    assert [list_devices(), list_devices()] == [["GPU-a", "GPU-b"]] * 2
    assert asked.read_text() == "\n"
    (kept,) = (tmp_path / "locks").glob("gpus-*")
    os.utime(kept, (1.0, 1.0))  # long ago
    assert list_devices() == ["GPU-a", "GPU-b"]
    assert asked.read_text() == "\n\n"
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nprintf 'GPU-c\\n'\n")
    assert list_devices() == ["GPU-c"]
    program.write_text("#!/bin/sh\nexit 9\n")  # no driver
    assert list_devices() == []
    program.unlink()
    assert list_devices() == []


def test_jobs_of_a_batch_system_do_not_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each job numbers its devices from 0; equal numbers are different devices of one machine."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    with lease_device(["0"]):
        assert start(tmp_path, "other", 0, SLURM_JOB_ID="8", CUDA_VISIBLE_DEVICES="0").wait(30) == 0


@pytest.mark.parametrize("text", ["0", "two", "-1", ""])
def test_a_wrong_number_of_slots_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKTRANSFER_SLOTS_PER_GPU", text)
    with pytest.raises(ConfigError, match=r"SLOTS_PER_GPU.*positive integer"), lease_device(["0"]):
        pass
