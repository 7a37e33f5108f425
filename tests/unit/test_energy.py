"""The energy of a training, from a simulated counter."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
import torch

from tasktransfer.training.energy import start_energy_meter

CUDA = torch.device("cuda")


class FakeNvml:
    """A substitute for the module ``pynvml`` that counts 1.5 kJ more at every read."""

    class NVMLError(Exception):
        """A substitute for the module's own error."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.millijoules = 2**60  # 32 bits would be full after two hours at 600 W

    def _call(self, name: str) -> None:
        if self.fails == name:
            raise self.NVMLError(name)

    def nvmlInit(self) -> None:  # noqa: N802
        self._call("init")

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        assert uuid == "GPU-1234"
        self._call("handle")
        return uuid

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:  # noqa: N802
        assert handle == "GPU-1234"
        self._call("read")
        self.millijoules += 1_500_000
        return self.millijoules


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(uuid="1234"))


@pytest.mark.parametrize(
    ("module", "device", "joules"),
    [
        (FakeNvml(), CUDA, 1500.0),
        *((FakeNvml(fails), CUDA, None) for fails in ("init", "handle", "read")),
        (None, CUDA, None),  # an import of it fails
        (FakeNvml(), torch.device("cpu"), None),
    ],
)
def test_a_gpu_is_queried_by_its_uuid(
    module: FakeNvml | None,
    device: torch.device,
    joules: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert start_energy_meter(device)() == joules


def test_a_gpu_that_stops_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    joules = start_energy_meter(CUDA)
    nvml.fails = "read"
    assert joules() is None


def test_a_shared_gpu_is_counted_by_its_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    monkeypatch.setenv("TASKTRANSFER_SLOTS_PER_GPU", "2")
    assert start_energy_meter(CUDA)() == 750.0


def test_the_real_module_where_there_is_no_such_gpu() -> None:
    """No driver, or a driver without a GPU of this UUID."""
    pytest.importorskip("pynvml")
    assert start_energy_meter(CUDA)() is None
