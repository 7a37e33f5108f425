"""The energy that a device used while a training ran on it, where the device tells it.

NVIDIA GPUs count it themselves (NVML, in millijoules, from the Volta generation on); Linux counts
that of Intel's and AMD's processors (RAPL, in microjoules), often for the administrator only.
Anything that is missing or refused means that nothing is known, never an error.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tasktransfer.training.device import SLOTS_VARIABLE

RAPL = Path("/sys/class/powercap")
SAMPLE_SECONDS = 60.0
"""How often a counter is read: a processor's starts over from 0 after a quarter of an hour at the
earliest."""

Counter = Callable[[], dict[str, float] | None]
"""Name of a part of the device → joules so far; None: not known any more."""


class Meter:
    """Adds up what a counter of energy says, from now on.

    Args:
        counter: see ``Counter``.
        wraps: name of a part → joules at which its counter starts over; none: it never does.
        share: of the device's energy that is this training's.
    """

    def __init__(
        self, counter: Counter, wraps: dict[str, float] | None = None, share: float = 1.0
    ) -> None:
        self._counter, self._wraps, self._share = counter, wraps or {}, share
        self._joules = 0.0
        self._last = counter()
        self._guard, self._done = threading.Lock(), threading.Event()
        if self._last is not None:
            threading.Thread(target=self._watch, daemon=True).start()

    def joules(self) -> float | None:
        """Joules since the meter was made; None where the device does not tell. It measures no
        more then."""
        self._done.set()
        self._sample()
        return None if self._last is None else self._joules * self._share

    def _watch(self) -> None:
        while not self._done.wait(SAMPLE_SECONDS):
            self._sample()

    def _sample(self) -> None:
        with self._guard:
            now = self._counter() if self._last is not None else None
            if now is None or self._last is None or now.keys() != self._last.keys():
                self._last = None
                return
            for name, value in now.items():
                used = value - self._last[name]
                self._joules += used if used >= 0 else max(0.0, used + self._wraps.get(name, 0.0))
            self._last = now


def meter(device: torch.device, threads: int) -> Meter:
    """A meter of the device that trains. Where several trainings share it, each counts its share:
    of a GPU by its slots, of the processors by the threads among the cores."""
    if device.type == "cuda":
        slots = os.environ.get(SLOTS_VARIABLE, "1")
        return Meter(_gpu(device), share=1 / max(1, int(slots) if slots.isdecimal() else 1))
    wraps = {zone.name: _joules(zone / "max_energy_range_uj") or 0.0 for zone in _packages()}
    return Meter(_processors, wraps, share=min(1.0, threads / (os.cpu_count() or 1)))


# --- processors ---------------------------------------------------------------------------------


def _packages() -> list[Path]:
    """The zones of whole processors: ``intel-rapl:0``, not their parts (``intel-rapl:0:1``)."""
    try:
        found = sorted(RAPL.glob("*-rapl:*"))
    except OSError:
        return []
    return [zone for zone in found if zone.name.count(":") == 1 and "mmio" not in zone.name]


def _processors() -> dict[str, float] | None:
    values = {zone.name: _joules(zone / "energy_uj") for zone in _packages()}
    known = {name: value for name, value in values.items() if value is not None}
    return known if known and len(known) == len(values) else None


def _joules(file: Path) -> float | None:
    try:
        return int(file.read_text()) / 1e6
    except (OSError, ValueError):
        return None


# --- GPUs ---------------------------------------------------------------------------------------


def _gpu(device: torch.device, library: str = "libnvidia-ml.so.1") -> Counter:
    """The counter of the GPU that torch calls ``device``, found by its UUID."""
    try:
        nvml: Any = ctypes.CDLL(library)
        handle = ctypes.c_void_p()
        uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}".encode()
        if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(handle)):
            return lambda: None
    except (OSError, AttributeError, RuntimeError, AssertionError):
        return lambda: None

    def read() -> dict[str, float] | None:
        millijoules = ctypes.c_ulonglong()
        try:
            failed = nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(millijoules))
        except AttributeError:
            return None
        return None if failed else {"gpu": millijoules.value / 1000}

    return read
