"""The speed-up of bfloat16 over float32 on this CPU, measured once per width and cached.

CPU flags are not enough: a virtual machine may report a flag whose instructions are slow, and a
build of torch may not use them. Measuring each time is not enough either: near the threshold, two
identical trainings could decide differently. So the first training measures, and later ones on the
same kind of CPU use its result as long as the cache file exists.

Other load on the machine must not influence the decision. The thread's own clock is used, which
stops while other threads have the core. The two formats alternate, and the median of their ratios
counts. A measurement during which the thread had to wait for its core is not cached.
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

from tasktransfer.files import json_text, locks, replace_file
from tasktransfer.results.provenance import read_cpu_name

UNITS = ("amx_bf16", "avx512_bf16", "sve_bf16", "bf16")
"""Torch's names of CPU instructions that multiply in bfloat16; the last two are for ARM."""

MIN_GAIN = 1.4
"""Minimum speed-up of a layer's update in bfloat16 that justifies rounding to three digits."""

MAX_WIDTH = 256
"""Largest hidden size that is measured: wider models gain more (docs/decisions/0017)."""
ROWS, TOKENS, HEADS = 8, 128, 2
"""Shape of the layer's input, a typical micro-batch on a CPU, and its attention heads."""
SECONDS, PAIRS = 0.3, 5
"""Thread time of a measurement in seconds, and minimum number of updates in each format.

With a third of a core, the median varied by 3 % between measurements."""
MIN_CORE_FRACTION = 0.9
"""Minimum fraction of the wall time with a core for a measurement to be cached."""

FILE = "bfloat16.json"


def is_bfloat16_faster(hidden_size: int, note: Callable[[str], None]) -> bool:
    """Return whether a layer runs at least ``MIN_GAIN`` times as fast in bfloat16 as in float32.

    Args:
        hidden_size: hidden size of the model.
        note: called with a message if the decision is not cached. If the machine is busy, the
            measurement counts once. If the cache cannot be written, the result is False, so that
            identical trainings stay identical.
    """
    units = list_bfloat16_units()
    if not units:
        return False
    width = min(hidden_size, MAX_WIDTH)
    machine = f"{read_cpu_name()}, {units[0]}, torch {torch.__version__}, hidden size {width}"
    try:
        return _read_or_measure_gain(machine, width, note) >= MIN_GAIN
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
        note(
            f"The training computes in float32, because this CPU's bfloat16 speed-up cannot be "
            f"cached ({error}). Set training.precision, or set XDG_CACHE_HOME to a writable folder."
        )
        return False


def list_bfloat16_units() -> list[str]:
    """Return those of ``UNITS`` that torch reports for this CPU."""
    has = torch.cpu.get_capabilities()
    return [name for name in UNITS if has.get(name, False)]


def get_cache_file() -> Path:
    """Return the path of the user's cache file with speed-ups by machine.

    Machines of the same kind that share a home directory share the decision.
    """
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "tasktransfer" / FILE


Clock = Callable[[], float]


def measure_gain(
    width: int, thread: Clock = time.thread_time, wall: Clock = time.perf_counter
) -> tuple[float, float]:
    """Measure the speed-up of a layer in bfloat16 over float32 on one thread.

    Args:
        width: hidden size.
        thread: clock of the thread's own time, in seconds.
        wall: clock of the wall time, in seconds.

    Returns:
        The speed-up, and the fraction of the wall time during which the thread had its core.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # the thread's clock does not count other threads
    try:
        update = _build_layer_call(width)
        for kind in (torch.float32, torch.bfloat16):
            update(kind)  # warm-up
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


def _build_layer_call(width: int) -> Callable[[torch.dtype], None]:
    """Return a function that runs a Transformer layer forward and backward in a number format."""
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


def _read_or_measure_gain(machine: str, width: int, note: Callable[[str], None]) -> float:
    file = get_cache_file()
    # One process at a time, so that two trainings that start together make the same decision.
    with locks.lock_path(file, note):
        gains = _read_cached_gains(file, note)
        if machine in gains:
            return gains[machine]
        gain, share = measure_gain(width)
        if share < MIN_CORE_FRACTION:
            note(
                f"bfloat16 is {gain:.1f} times as fast as float32 on this CPU, but the measurement "
                f"had only {share:.0%} of a core, so the next training measures again. Set "
                "training.precision to fix the number format."
            )
            return gain
        gains[machine] = round(gain, 2)
        with replace_file(file) as part:
            part.write_text(json.dumps(gains, indent=1) + "\n", encoding="utf-8")
        return gains[machine]


def _read_cached_gains(file: Path, note: Callable[[str], None]) -> dict[str, float]:
    """Read the cached speed-ups by machine.

    A damaged file is reported to ``note`` and ignored.
    """
    try:
        gains: Any = json_text.read(file)
        if isinstance(gains, dict) and all(_is_gain(value) for value in gains.values()):
            return gains
        problem = "it does not have one number per machine"
    except FileNotFoundError:
        return {}
    except ValueError as error:
        problem = str(error)
    note(
        f"{file}: The file is damaged ({problem}), so this CPU's bfloat16 speed-up is measured "
        "again."
    )
    return {}


def _is_gain(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
