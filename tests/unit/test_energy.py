"""The energy of a training, from counters that tests make up."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest
import torch

from tasktransfer.training import energy
from tasktransfer.training.energy import Meter, meter

CPU = torch.device("cpu")


@pytest.fixture
def rapl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two processors, one with a part of its own, which is in its processor's count already."""
    for name, joules in (("intel-rapl:0", 100), ("intel-rapl:1", 10), ("intel-rapl:0:0", 5)):
        (tmp_path / name).mkdir()
        count(tmp_path, name, joules)
        (tmp_path / name / "max_energy_range_uj").write_text("200000000\n")
    monkeypatch.setattr(energy, "RAPL", tmp_path)
    monkeypatch.setattr(energy.os, "cpu_count", lambda: 4)
    return tmp_path


def count(rapl: Path, name: str, joules: float) -> None:
    (rapl / name / "energy_uj").write_text(f"{int(joules * 1e6)}\n")


def test_processors_are_added_and_shared_by_threads(rapl: Path) -> None:
    found = meter(CPU, threads=1)
    count(rapl, "intel-rapl:0", 140)
    count(rapl, "intel-rapl:1", 30)
    count(rapl, "intel-rapl:0:0", 50)
    assert found.joules() == pytest.approx((40 + 20) / 4)


def test_a_counter_that_starts_over(rapl: Path) -> None:
    found = meter(CPU, threads=4)
    count(rapl, "intel-rapl:0", 30)
    assert found.joules() == pytest.approx(200 - 100 + 30)


def test_counters_that_nobody_may_read(rapl: Path) -> None:
    (rapl / "intel-rapl:1" / "energy_uj").unlink()
    assert meter(CPU, threads=4).joules() is None


def test_a_counter_that_goes_away(rapl: Path) -> None:
    found = meter(CPU, threads=4)
    (rapl / "intel-rapl:0" / "energy_uj").write_text("?")
    assert found.joules() is None


def test_machines_without_counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy, "RAPL", tmp_path / "nowhere")
    assert meter(CPU, threads=1).joules() is None


def test_what_passes_between_two_readings_is_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter that starts over several times is read often enough by its thread."""
    monkeypatch.setattr(energy, "SAMPLE_SECONDS", 0.0)
    values = iter([0.0, 60.0, 20.0, 80.0])
    last = [0.0]

    def read() -> dict[str, float] | None:
        last[0] = next(values, last[0])
        return {"cpu": last[0]}

    found = Meter(read, {"cpu": 100.0})
    while last[0] != 80.0:
        pass
    assert found.joules() == pytest.approx(60 + 60 + 60)


class FakeNvml:
    """Counts 1.5 kJ more at every look."""

    def __init__(self, fails: str = "") -> None:
        self.fails, self.millijoules = fails, 0

    def nvmlInit_v2(self) -> int:  # noqa: N802
        return self.fails == "init"

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, handle: Any) -> int:  # noqa: N802
        assert uuid == b"GPU-1234"
        return self.fails == "handle"

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any, into: Any) -> int:  # noqa: N802
        self.millijoules += 1_500_000
        into._obj.value = self.millijoules
        return self.fails == "read"


@pytest.mark.parametrize("fails", ["", "init", "handle", "read"])
def test_a_gpu_is_asked_by_its_uuid(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    properties = type("Properties", (), {"uuid": "1234"})
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: FakeNvml(fails))
    monkeypatch.setenv("TASKTRANSFER_SLOTS_PER_GPU", "2")
    joules = meter(torch.device("cuda"), threads=1).joules()
    assert joules == (None if fails else 750.0)


def test_a_gpu_without_its_library() -> None:
    assert energy._gpu(torch.device("cuda"), "libnowhere.so")() is None
