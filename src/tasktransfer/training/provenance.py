"""What of a record's provenance torch tells: the device that a model was run on."""

from __future__ import annotations

import torch

from tasktransfer.results.provenance import plain_host
from tasktransfer.results.schema import Host


def host(device: torch.device, precision: str, threads: int) -> Host:
    """The machine and the part of it that computed."""
    here = plain_host(threads) | {"precision": precision}
    if device.type == "cuda":
        here |= {"device": "cuda", "gpu": torch.cuda.get_device_name(device)}
    return here


def peak_gpu_memory_mb(device: torch.device) -> float | None:
    """Peak memory that torch held on the GPU, in MiB; None without one."""
    if device.type != "cuda":
        return None
    return float(torch.cuda.max_memory_allocated(device)) / 2**20
