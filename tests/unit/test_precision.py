"""The number format of a training's matrix products."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from small_models import small_setup
from tasktransfer.training import bfloat16_gain
from tasktransfer.training.bfloat16_gain import MAX_WIDTH, MIN_CORE_FRACTION, MIN_GAIN, UNITS
from tasktransfer.training.precision import Precision, choose_precision

CPUINFO = Path("/proc/cpuinfo")
CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty cache, so that nothing is cached and the user's cache is not changed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return bfloat16_gain.get_cache_file()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[float]]:
    """Simulate a CPU with or without bfloat16 units, and gains of layers by measurement.

    The thread has its core for the given fraction of the time.
    """

    def is_now(units: str | None, *gains: float, share: float = 1.0) -> list[float]:
        left = list(gains)
        has = {units: True} if units else {}
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, **has})
        monkeypatch.setattr(bfloat16_gain, "measure_gain", lambda width: (left.pop(0), share))
        return left

    return is_now


Machine = Callable[..., list[float]]
GAINS, GAINS_LITTLE = 4.0, MIN_GAIN - 0.01
WIDE = 384


@pytest.mark.parametrize(
    ("units", "gain", "hidden_size", "expected"),
    [
        *((units, GAINS, 384, "bfloat16") for units in UNITS),
        *((units, GAINS_LITTLE, 384, "float32") for units in UNITS),
        ("amx_bf16", GAINS, 64, "bfloat16"),
        (None, GAINS, 1024, "float32"),
    ],
)
def test_auto_on_a_cpu_depends_on_its_units_and_on_what_they_gain(
    machine: Machine, units: str | None, gain: float, hidden_size: int, expected: str
) -> None:
    machine(units, gain)
    assert choose_precision("auto", CPU, hidden_size) == expected


def test_a_decision_is_remembered(machine: Machine, cache: Path) -> None:
    left = machine("avx512_bf16", GAINS, GAINS_LITTLE)
    assert [choose_precision("auto", CPU, WIDE) for _ in range(3)] == ["bfloat16"] * 3
    assert left == [GAINS_LITTLE]
    assert [*json.loads(cache.read_text()).values()] == [GAINS]


def test_another_machine_or_width_is_measured_by_itself(machine: Machine, cache: Path) -> None:
    machine("avx512_bf16", GAINS_LITTLE, GAINS)
    assert choose_precision("auto", CPU, 64) == "float32"
    assert choose_precision("auto", CPU, 128) == "bfloat16"
    machine("amx_bf16", GAINS)
    assert choose_precision("auto", CPU, 64) == "bfloat16"
    assert [*json.loads(cache.read_text()).values()] == [GAINS_LITTLE, GAINS, GAINS]


def test_wide_models_share_one_measurement(machine: Machine) -> None:
    machine("avx512_bf16", GAINS)
    assert [choose_precision("auto", CPU, width) for width in (MAX_WIDTH, 384, 768)] == [
        "bfloat16"
    ] * 3


def test_what_a_busy_machine_measures_is_not_remembered(machine: Machine, cache: Path) -> None:
    """Otherwise one bad moment would decide permanently."""
    said: list[str] = []
    machine("avx512_bf16", GAINS_LITTLE, share=MIN_CORE_FRACTION - 0.01)
    assert choose_precision("auto", CPU, WIDE, said.append) == "float32"
    assert "of a core" in said[0] and "training.precision" in said[0]
    assert not cache.exists()
    machine("avx512_bf16", GAINS, share=MIN_CORE_FRACTION)
    assert choose_precision("auto", CPU, WIDE) == "bfloat16"
    assert [*json.loads(cache.read_text()).values()] == [GAINS]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": 0}', '{"a": "x"}', '{"a": NaN}', "\xff"])
def test_a_damaged_memory_is_reported_and_measured_again(
    machine: Machine, cache: Path, content: str
) -> None:
    cache.parent.mkdir()
    cache.write_text(content, encoding="latin-1")
    machine("amx_bf16", GAINS)
    said: list[str] = []
    assert choose_precision("auto", CPU, WIDE, note=said.append) == "bfloat16"
    assert [f"{cache}: The file is damaged" in text for text in said] == [True]
    assert [*json.loads(cache.read_text()).values()] == [GAINS]


def test_what_cannot_be_remembered_is_not_measured_again_each_time(
    machine: Machine, cache: Path
) -> None:
    cache.parent.write_text("a file where the folder should be")
    left = machine("amx_bf16", GAINS)
    said: list[str] = []
    assert choose_precision("auto", CPU, WIDE, note=said.append) == "float32"
    assert left == [GAINS]
    assert "Set training.precision" in said[0]


class Clocks:
    """The thread's own clock and the wall clock of a simulated machine.

    An update takes 40 ms in float32 and 10 in bfloat16, the thread waits ``waits`` times as long,
    and a few updates are a hundred times as slow.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, waits: float) -> None:
        self.own = self.everybodys = 0.0
        self.waits, self.updates = waits, 0
        monkeypatch.setattr(bfloat16_gain, "_build_layer_call", lambda width: self.update)

    def update(self, kind: torch.dtype) -> None:
        self.updates += 1
        took = {torch.float32: 0.04, torch.bfloat16: 0.01}[kind]
        self.own += took * (100 if self.updates == 7 else 1)
        self.everybodys = self.own * (1 + self.waits)

    def gain(self) -> tuple[float, float]:
        return bfloat16_gain.measure_gain(64, lambda: self.own, lambda: self.everybodys)


@pytest.mark.parametrize("waits", [0.0, 2.0, 18.0])
def test_the_gain_is_that_of_the_threads_own_time_whoever_else_works(
    monkeypatch: pytest.MonkeyPatch, waits: float
) -> None:
    threads = torch.get_num_threads()
    gain, share = Clocks(monkeypatch, waits).gain()
    assert gain == pytest.approx(4)
    assert share == pytest.approx(1 / (1 + waits))
    assert torch.get_num_threads() == threads


def test_a_layer_of_this_machine_is_measured() -> None:
    """For any width, without changing the training's random numbers."""
    before = torch.get_rng_state()
    for width in (16, 63):
        gain, share = bfloat16_gain.measure_gain(width)
        assert gain > 0
        assert 0 < share < 1.2
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("supported", "expected"), [(True, "bfloat16"), (False, "float32")])
def test_auto_on_a_gpu_depends_on_the_gpu(
    monkeypatch: pytest.MonkeyPatch, supported: bool, expected: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: supported)
    assert choose_precision("auto", CUDA, 64) == expected


@pytest.mark.parametrize("wanted", ["float32", "bfloat16"])
def test_what_is_asked_for_is_done(wanted: Precision) -> None:
    for device in (CPU, CUDA):
        for hidden_size in (16, 1024):
            assert choose_precision(wanted, device, hidden_size) == wanted


@pytest.mark.skipif(not CPUINFO.is_file(), reason="no /proc/cpuinfo to compare with: not Linux")
def test_this_machine_s_units_are_those_that_its_kernel_names() -> None:
    named = {"svebf16": "sve_bf16"}  # on ARM; the kernel's other names are torch's
    words = {named.get(word, word) for word in CPUINFO.read_text().split()}
    assert bfloat16_gain.list_bfloat16_units() == [name for name in UNITS if name in words]


@pytest.mark.parametrize("wanted", ["float32", "bfloat16"])
def test_weights_are_converted_once_an_update(wanted: Precision) -> None:
    """And again in the next update, after they have changed."""
    setup = small_setup(precision=wanted)
    weight = torch.ones(2, 2, requires_grad=True)
    one = torch.ones(1, 2)
    for expected in (2.0, 4.0):
        with setup.cache_casts(), torch.profiler.profile() as profile:
            for _ in range(3):
                with setup.autocast():
                    made = one @ weight
                (gradient,) = torch.autograd.grad(made.sum(), [weight])
                assert gradient.dtype == torch.float32
                assert gradient.tolist() == [[1.0, 1.0]] * 2
        assert made.tolist() == [[expected, expected]]
        conversions = {event.key: event.count for event in profile.key_averages()}
        # Of the weight once, and three times each of what it is multiplied by and of gradients.
        seen = conversions.get("aten::_to_copy", 0)
        assert seen == (7 if wanted == "bfloat16" else 0)
        weight.data.mul_(2)
