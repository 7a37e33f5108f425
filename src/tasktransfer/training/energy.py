"""The energy that a GPU used while a training ran on it, if the GPU reports it.

NVIDIA's GPUs count it themselves from the Volta generation on: millijoules since the driver was
loaded, in 64 bits, which NVML reads. A library, a driver or a counter that is missing means that
the energy is not known, never an error. Processors are not asked.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from tasktransfer.training.device import slots_per_gpu

Counter = Callable[[], int | None]
"""Millijoules so far; None: not reported."""


def meter(device: torch.device) -> Callable[[], float | None]:
    """Start to measure the device that trains.

    Returns:
        A function: joules since this call, None if the device does not report them. Trainings
        that share a GPU count equal parts of it, by its slots.
    """
    read = _gpu_counter(device) if device.type == "cuda" else _unknown
    begin = read()

    def joules() -> float | None:
        end = read()
        return None if begin is None or end is None else (end - begin) / 1000 / slots_per_gpu()

    return joules


def _gpu_counter(device: torch.device) -> Counter:
    """The counter of the GPU that torch calls ``device``. NVML numbers GPUs in its own way and
    ignores CUDA_VISIBLE_DEVICES, so the GPU is found by its UUID."""
    try:
        import pynvml  # noqa: PLC0415 - only where there is a GPU to ask
    except ImportError:
        return _unknown
    try:
        pynvml.nvmlInit()
        uuid = torch.cuda.get_device_properties(device).uuid
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
    except pynvml.NVMLError:
        return _unknown

    def read() -> int | None:
        try:
            return int(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle))
        except pynvml.NVMLError:
            return None

    return read


def _unknown() -> None:
    return None
