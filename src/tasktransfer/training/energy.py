"""The energy that a GPU uses during a training, if the GPU reports it.

NVIDIA GPUs since the Volta generation count it in millijoules since the driver was loaded, as a
64-bit number that NVML reads. If a library, a driver or a counter is missing, the energy is
unknown; this is never an error. The energy of processors is not measured.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from tasktransfer.training.device import read_slots_per_gpu

Counter = Callable[[], int | None]
"""Function that returns the millijoules so far; None if they are not reported."""


def start_energy_meter(device: torch.device) -> Callable[[], float | None]:
    """Start to measure the energy of the training device.

    Returns:
        A function that returns the joules since this call, or None if the device does not report
        them. If trainings may share the GPU, its energy is divided by the number of its slots.
    """
    read = _create_gpu_counter(device) if device.type == "cuda" else _return_none
    begin = read()

    def compute_joules() -> float | None:
        end = read()
        return None if begin is None or end is None else (end - begin) / 1000 / read_slots_per_gpu()

    return compute_joules


def _create_gpu_counter(device: torch.device) -> Counter:
    """Create the energy counter of torch's ``device``.

    NVML numbers GPUs differently and ignores CUDA_VISIBLE_DEVICES, so the GPU is found by its UUID.
    """
    try:
        import pynvml  # noqa: PLC0415 - only needed with a GPU
    except ImportError:
        return _return_none
    try:
        pynvml.nvmlInit()
        uuid = torch.cuda.get_device_properties(device).uuid
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
    except pynvml.NVMLError:
        return _return_none

    def read() -> int | None:
        try:
            return int(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle))
        except pynvml.NVMLError:
            return None

    return read


def _return_none() -> None:
    return None
