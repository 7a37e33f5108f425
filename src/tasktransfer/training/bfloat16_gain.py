"""Whether this CPU gains by computing in bfloat16: measured once for a width, and remembered.

Flags alone do not say: a virtual machine may pass on a flag whose instructions are slow, and a
build of torch may not use them. A measurement alone would not do either: next to the threshold two
equal trainings could decide differently. So the first training measures, and all later ones on a
CPU of this kind go by what it found, for as long as the file is there.

Other work on the machine must not decide. The clock is that of the thread, which stands still while
others have the core; the formats take turns; of the ratios the median counts. What was measured
while the thread had to wait for its core is not remembered.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tasktransfer.files import json_text, locks, replacing
from tasktransfer.results.provenance import cpu_name

UNITS = ("amx_bf16", "avx512_bf16", "sve_bf16", "bf16")
"""What torch calls a CPU's instructions that multiply in bfloat16; the last two are ARM's."""

LEAST_GAIN = 1.4
"""How many times as fast as in float32 a layer's update must be in bfloat16, for what rounding to
three digits costs."""

WIDEST = 256
"""The largest hidden size that is measured: wider models gain more (docs/decisions/0017)."""
ROWS, TOKENS, HEADS = 8, 128, 2
"""Of the layer's input, a micro-batch on a CPU, and its heads."""
SECONDS, PAIRS = 0.3, 5
"""Of the thread's time that a measurement takes, and updates in either format at least. At a third
of a core, its median moved by 3 % from one measurement to the next."""
LEAST_SHARE = 0.9
"""Of the wall time that the thread must have had its core for the measurement to be remembered."""

FILE = "bfloat16.json"


def least_gain_reached(hidden_size: int, note: Callable[[str], None]) -> bool:
    """Whether a model's layers are ``LEAST_GAIN`` times as fast in bfloat16 as in float32 on this
    CPU.

    Args:
        hidden_size: of the model.
        note: told where the decision is not remembered: because the machine is busy (what was
            measured counts for this time), or because it cannot be kept (the answer is then no, so
            that equal trainings stay equal).
    """
    units = bfloat16_units()
    if not units:
        return False
    width = min(hidden_size, WIDEST)
    machine = f"{cpu_name()}, {units[0]}, torch {torch.__version__}, hidden size {width}"
    try:
        return _gain_of(machine, width, note) >= LEAST_GAIN
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        note(
            f"computed in float32: what this CPU gains by bfloat16 cannot be remembered ({error}); "
            "set training.precision, or XDG_CACHE_HOME to a folder that can be written"
        )
        return False


def bfloat16_units() -> list[str]:
    """Those of ``UNITS`` that this CPU has and torch knows."""
    has = torch.cpu.get_capabilities()
    return [name for name in UNITS if has.get(name, False)]


def memory_file() -> Path:
    """Where gains are kept, by machine: JSON in the user's cache folder. Machines that share a home
    and are alike share the decision."""
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "tasktransfer" / FILE


Clock = Callable[[], float]


def measured_gain(
    width: int, thread: Clock = time.thread_time, wall: Clock = time.perf_counter
) -> tuple[float, float]:
    """How many times as fast the update of a layer is in bfloat16 as in float32, and which share of
    the time the thread had its core. ``SECONDS``, on one thread.

    Args:
        width: hidden size.
        thread: the thread's own time, seconds.
        wall: everybody's.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # the thread's clock knows nothing of others
    try:
        update = _layer(width)
        for kind in (torch.float32, torch.bfloat16):
            update(kind)  # the first one sets things up
        began = wall(), thread()
        ratios: list[float] = []
        while thread() - began[1] < SECONDS or len(ratios) < PAIRS:
            started = thread()
            update(torch.float32)
            between = thread()
            update(torch.bfloat16)
            ratios.append((between - started) / max(thread() - between, 1e-9))
        took = max(wall() - began[0], 1e-9)
        return statistics.median(ratios), (thread() - began[1]) / took
    finally:
        torch.set_num_threads(before)


def _layer(width: int) -> Callable[[torch.dtype], None]:
    """Forward and backward pass of a Transformer's layer, in a format."""
    with torch.random.fork_rng(devices=[]):
        layer = torch.nn.TransformerEncoderLayer(
            width,
            math.gcd(width, HEADS),
            4 * width,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
        )
        states = torch.rand(ROWS, TOKENS, width)
    parameters = list(layer.parameters())

    def update(kind: torch.dtype) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=kind is torch.bfloat16):
            made = layer(states)
        torch.autograd.grad(made.float().sum(), parameters)

    return update


def _gain_of(machine: str, width: int, note: Callable[[str], None]) -> float:
    file = memory_file()
    # One at a time: two trainings that start together decide alike.
    with locks.one_at_a_time(file, note):
        gains = _remembered(file, note)
        if machine in gains:
            return gains[machine]
        gain, share = measured_gain(width)
        if share < LEAST_SHARE:
            note(
                f"bfloat16 is {gain:.1f} times as fast as float32 on this CPU, measured while it "
                f"was busy ({share:.0%} of a core): measured again next time; name "
                "training.precision to be sure"
            )
            return gain
        gains[machine] = round(gain, 2)
        with replacing(file) as part:
            part.write_text(json.dumps(gains, indent=1) + "\n", encoding="utf-8")
        return gains[machine]


def _remembered(file: Path, note: Callable[[str], None]) -> dict[str, float]:
    """Gains by machine; none where the file is damaged, which is told."""
    try:
        gains: Any = json_text.read(file)
        if isinstance(gains, dict) and all(_is_gain(value) for value in gains.values()):
            return gains
        problem = "not a gain for each machine"
    except FileNotFoundError:
        return {}
    except ValueError as error:
        problem = str(error)
    note(f"{file}: damaged ({problem}); what this CPU gains by bfloat16 is measured again")
    return {}


def _is_gain(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
