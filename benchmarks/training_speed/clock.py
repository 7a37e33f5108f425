"""Clocks of a measuring process, which wait for the GPU because it works asynchronously."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from tasktransfer.results.provenance import read_peak_memory_mb
from tasktransfer.training.torch_facts import read_peak_gpu_memory


def wait_for_gpu() -> None:
    """Wait until the GPU, if one is used, has finished all operations."""
    if _uses_gpu():
        torch.cuda.synchronize()


def _uses_gpu() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def measure_seconds(work: Callable[[], Any]) -> float:
    """Return the seconds that ``work`` takes, including the device's."""
    wait_for_gpu()
    began = time.perf_counter()
    work()
    wait_for_gpu()
    return time.perf_counter() - began


class FirstUpdate:
    """Recorder of the first forward pass of any module, with which the first update begins.

    Args:
        started: ``time.monotonic()`` of the parent when it started this process; all processes of a
            machine share this clock.
    """

    def __init__(self, started: float) -> None:
        self.started = started
        self.seconds: float | None = None

    def watch(self) -> None:
        """Record the first forward pass from now on."""
        handle = register_module_forward_pre_hook(lambda *_: note())

        def note() -> None:
            self.seconds = time.monotonic() - self.started
            handle.remove()

    @property
    def required_seconds(self) -> float:
        """The seconds from the process's start to its first update."""
        if self.seconds is None:
            raise RuntimeError(
                "No update was seen, because the contestant's model is not a torch module."
            )
        return self.seconds


def read_memory() -> tuple[float, float | None]:
    """Return the peak memory of this process, and of the GPU if one is used, in MiB."""
    device = torch.device("cuda" if _uses_gpu() else "cpu")
    return read_peak_memory_mb(), read_peak_gpu_memory(device)
