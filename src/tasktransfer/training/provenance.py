"""What made a record: versions, commit, hardware. Asked once, at the end of a training."""

from __future__ import annotations

import os
import platform
import resource
import sys
from pathlib import Path
from typing import Literal

import torch

from tasktransfer.results.records import Host


def host(device: torch.device, precision: str, threads: int) -> Host:
    """The machine and the part of it that trained."""
    kind: Literal["cpu", "cuda"] = "cuda" if device.type == "cuda" else "cpu"
    return {
        "platform": platform.platform(),
        "cpu": cpu_name(),
        "cores": os.cpu_count() or 1,
        "gpu": torch.cuda.get_device_name(device) if kind == "cuda" else None,
        "device": kind,
        "precision": precision,
        "threads": threads,
    }


def cpu_name() -> str:
    """What the CPU calls itself, as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def peak_memory_mb() -> float:
    """Peak resident memory of this process in MiB."""
    try:
        # Linux hands a parent's peak down through exec in what getrusage says, but not in this.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**10
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def peak_gpu_memory_mb(device: torch.device) -> float | None:
    """Peak memory that torch held on the GPU, in MiB; None without one."""
    if device.type != "cuda":
        return None
    return float(torch.cuda.max_memory_allocated(device)) / 2**20
