"""One device per training: a lease by kernel file lock, acquired before torch is imported.

``snakemake --resources gpu=4`` counts devices but does not assign them, so every training picks its
own. The kernel releases the lock of a process that ends for any reason, so no lock is ever stale.

Standard library only. Several trainings share a device only if TASKTRANSFER_SLOTS_PER_GPU is set.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tasktransfer.core.identity import compute_digest
from tasktransfer.errors import ConfigError
from tasktransfer.files import create_private_folder, locks, replace_file

SLOTS_VARIABLE = "TASKTRANSFER_SLOTS_PER_GPU"
LOCKS_VARIABLE = "TASKTRANSFER_LOCKS"
BATCH_JOB_VARIABLES = ("SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID")
"""Variables set inside the jobs of batch systems that assign devices by CUDA_VISIBLE_DEVICES.

A Kubernetes pod sees only its own devices, and has its own locks."""
POLL_SECONDS = 0.25
CACHE_SECONDS = 3600.0
"""Time for which the list of GPUs is cached: a GPU may fail while the machine is running."""

_idle_locks: dict[Path, int] = {}
"""Locks of finished leases: file → open descriptor.

They are held until the process ends, because torch keeps its context and cached memory on the
device until then."""


def list_devices() -> list[str]:
    """Return the GPUs that this process may use.

    These are the devices in CUDA_VISIBLE_DEVICES if it is set, otherwise every device's UUID from
    nvidia-smi. A batch job without an assigned device has none, even if the machine has GPUs,
    because the batch system assigns them.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None and get_batch_job() is not None:
        visible = ""
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip() not in ("", "-1")]
    program = shutil.which("nvidia-smi")
    return [] if program is None else _list_gpus(program)


def _list_gpus(program: str) -> list[str]:
    """Return the GPUs that ``nvidia-smi`` lists.

    It takes up to a second of processor time, so its output is cached next to the locks for an
    hour. A restart of the machine or a change of its devices invalidates the cache. An empty list
    is not cached.
    """
    file = get_lock_folder() / f"gpus-{_compute_machine_digest(program)}.txt"
    with suppress(OSError):
        if 0 <= time.time() - file.stat().st_mtime < CACHE_SECONDS:
            return file.read_text(encoding="utf-8").splitlines()
    try:
        listed = subprocess.run(
            [program, "--query-gpu=uuid", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    gpus = [line.strip() for line in listed.stdout.splitlines() if line.strip()]
    if gpus:
        with suppress(OSError), replace_file(file) as part:
            part.write_text("\n".join(gpus), encoding="utf-8")
    return gpus


def _compute_machine_digest(program: str) -> str:
    """Return a digest of all facts on which the list of GPUs depends.

    These are the machine's boot id, the container's devices, and the program that lists them.
    """
    boot = Path("/proc/sys/kernel/random/boot_id")
    boot_id = boot.read_text() if boot.is_file() else ""
    devices = sorted(path.name for path in Path("/dev").glob("nvidia*"))
    return compute_digest([boot_id, devices, program, Path(program).stat().st_mtime_ns])[:16]


def get_batch_job() -> str | None:
    """Return the ID of this process's batch job, or None outside of batch jobs."""
    return next((os.environ[name] for name in BATCH_JOB_VARIABLES if name in os.environ), None)


def read_slots_per_gpu() -> int:
    """Read from the environment how many trainings may share a GPU.

    Raises:
        ConfigError: the variable is not a positive integer.
    """
    text = os.environ.get(SLOTS_VARIABLE, "1")
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(
            f"{SLOTS_VARIABLE}={text}: The value must be a positive integer. Correct the value, "
            "or unset the variable."
        )
    return int(text)


def get_lock_folder() -> Path:
    """Return the folder for lock files, and create it if it is missing.

    There is one per user and machine. By default it is in the folder for temporary files, so that
    it is not on a shared file system.
    """
    given = os.environ.get(LOCKS_VARIABLE)
    if given is None:
        folder = Path(tempfile.gettempdir(), f"tasktransfer-{os.getuid()}")
        return create_private_folder(folder, f"set {LOCKS_VARIABLE} to a folder of your own")
    Path(given).mkdir(mode=0o700, parents=True, exist_ok=True)
    return Path(given)


@contextmanager
def lease_device(pool: list[str], slots: int | None = None) -> Iterator[str | None]:
    """Lease one of several devices, after waiting until one is free.

    The device is released when this process ends for any reason; a later lease of the same process
    uses it again. Sets CUDA_VISIBLE_DEVICES to the leased device, or to an empty value in a batch
    job without a device. It must therefore be entered before torch is imported.

    Yields:
        The device's name; None for an empty pool (CPU).
    """
    if not pool:
        if get_batch_job() is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        yield None
        return
    slots = slots if slots is not None else read_slots_per_gpu()
    device, path, descriptor = _wait_for_slot(pool, slots)
    os.environ["CUDA_VISIBLE_DEVICES"] = device
    try:
        yield device
    finally:
        _idle_locks[path] = descriptor


def _wait_for_slot(pool: list[str], slots: int) -> tuple[str, Path, int]:
    folder = get_lock_folder()
    job = f"{number}-" if (number := get_batch_job()) else ""
    choice = {
        folder / f"{job}{device.replace('/', '_')}-{slot}.lock": device
        for slot in range(slots)
        for device in pool
    }
    for path in _idle_locks.keys() & choice.keys():
        return choice[path], path, _idle_locks.pop(path)
    while True:
        for path, device in choice.items():
            descriptor = _open_locked_file(path)
            if descriptor is not None:
                return device, path, descriptor
        time.sleep(POLL_SECONDS)


def _open_locked_file(path: Path) -> int | None:
    """Open and lock a file, or return None if another process holds the lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if locks.try_lock(descriptor):
        return descriptor
    os.close(descriptor)
    return None
