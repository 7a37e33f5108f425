"""Whether this CPU gains by multiplying in bfloat16: measured once, and remembered.

Flags alone do not say: a virtual machine may pass on a flag whose instructions are slow, and a
build of torch may not use them. A measurement alone would not do either: next to the threshold two
equal trainings could decide differently. So the first training measures, and all later ones on a
CPU of this kind go by what it found, for as long as the file is there.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tasktransfer.files import json_text, locks, replacing
from tasktransfer.training.provenance import cpu_name

UNITS = ("amx_bf16", "avx512_bf16", "sve_bf16", "bf16")
"""What torch calls a CPU's instructions that multiply in bfloat16; the last two are ARM's."""

LEAST_GAIN = 1.5
"""How many times as fast as in float32 a product in bfloat16 must be. Around the products are
conversions: where products were 3 times as fast, an update was 1.4 times as fast."""

SHAPE = (1024, 256, 1024)
"""Rows, inner size and columns of the product: a micro-batch and a feed-forward layer of the
narrowest model that may compute in bfloat16."""
ROUNDS = 15

FILE = "bfloat16.json"


def least_gain_reached(threads: int, note: Callable[[str], None]) -> bool:
    """Whether products in bfloat16 are ``LEAST_GAIN`` times as fast as in float32 on this CPU.

    Args:
        threads: that a product is computed with.
        note: told where the decision cannot be kept: the answer is then no, so that equal
            trainings stay equal.
    """
    units = bfloat16_units()
    if not units:
        return False
    machine = f"{cpu_name()}, {units[0]}, torch {torch.__version__}, {threads} threads"
    try:
        return _gain_of(machine, threads, note) >= LEAST_GAIN
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


def measured_gain(threads: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """How many times as fast a product is in bfloat16 as in float32: the quickest of either.

    They take turns, so that other work on the machine slows both down, and the quickest is what the
    machine does undisturbed. A twentieth of a second.
    """
    rows, inner, columns = SHAPE
    pairs = [
        (torch.ones(rows, inner, dtype=kind), torch.ones(inner, columns, dtype=kind))
        for kind in (torch.float32, torch.bfloat16)
    ]
    quickest = [math.inf, math.inf]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for _ in range(ROUNDS):
            for which, (left, right) in enumerate(pairs):
                began = clock()
                torch.mm(left, right)
                quickest[which] = min(quickest[which], clock() - began)
    finally:
        torch.set_num_threads(before)
    return quickest[0] / quickest[1]


def _gain_of(machine: str, threads: int, note: Callable[[str], None]) -> float:
    file = memory_file()
    # One at a time: two trainings that start together decide alike.
    with locks.one_at_a_time(file, note):
        gains = _remembered(file, note)
        if machine not in gains:
            gains[machine] = round(measured_gain(threads), 2)
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
