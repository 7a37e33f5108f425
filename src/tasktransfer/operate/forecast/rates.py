"""Speed of matrix products on a machine: measured in a second and cached, or known by GPU name.

Every forecast without records is based on it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Literal

from tasktransfer.core.validation import describe_unknown
from tasktransfer.errors import ConfigError, TaskTransferError
from tasktransfer.files import json_text
from tasktransfer.operate.forecast.machine_cache import (
    cache_measurement,
    describe_machine,
    read_measurement,
)
from tasktransfer.training.device import list_devices

Device = Literal["cpu", "cuda"]
Precision = Literal["float32", "bfloat16"]
Basis = Literal["measured", "by name", "reference values"]

FILE = "matrix_product.json"
LONGEST = 120.0

CPU: dict[Precision, float] = {"float32": 90e9, "bfloat16": 280e9}
"""Operations per second of a core's square matrix product, if it cannot be measured.

They are those of a server CPU from 2023 or later, with bfloat16 units.
"""

DATASHEET: dict[str, tuple[float, float]] = {
    "V100": (15.7e12, 15.7e12),
    "T4": (8.1e12, 8.1e12),
    "A10G": (31e12, 70e12),
    "A100": (156e12, 312e12),
    "L4": (60e12, 121e12),
    "L40S": (183e12, 362e12),
    "RTX 4090": (82e12, 165e12),
    "H100 PCIe": (378e12, 756e12),
    "H100": (494e12, 989e12),
    "H200": (494e12, 989e12),
}
"""GPU → operations per second of a dense product in float32 and in bfloat16, from its datasheet.

float32 uses TF32 units if the GPU has them. GPUs without bfloat16 units repeat the float32 rate.
"""

REACHED = 0.7
"""Assumed fraction of the datasheet rate that large products reach; it was not measured."""

USUAL_CARD = "A100"


@dataclass(frozen=True, slots=True)
class Rates:
    """Operations per second of a large matrix product, by precision.

    A multiplication and addition count as two operations. ``where``: readable name of the host and
    core, or of the GPU. ``basis``: basis of the numbers.
    """

    device: Device
    flops: Mapping[Precision, float]
    where: str
    basis: Basis

    def describe(self) -> str:
        """Describe the rates and their origin in a sentence."""
        rates = " and ".join(f"{rate / 1e9:,.0f} GFLOP/s in {p}" for p, rate in self.flops.items())
        how = {
            "measured": "measured on this machine",
            "by name": f"{REACHED:.0%} of the GPU's datasheet, not measured",
            "reference values": "a server core of 2023, not measured",
        }[self.basis]
        return f"{self.where}: {rates} ({how})"


def find_card_rates(name: str) -> Rates:
    """Return the published rates of a GPU, given its name.

    Raises:
        ConfigError: no GPU in ``DATASHEET`` has this name.
    """
    cards = [card for card in DATASHEET if _is_named(card, name)]
    if not cards:
        raise ConfigError(
            f"--card: {describe_unknown('card', name, tuple(DATASHEET))} Alternatively, use "
            f"--on gpu without --card for the rates of an {USUAL_CARD}."
        )
    card = max(cards, key=len)
    float32, bfloat16 = DATASHEET[card]
    flops: dict[Precision, float] = {"float32": REACHED * float32, "bfloat16": REACHED * bfloat16}
    return Rates("cuda", flops, card, "by name")


def _is_named(card: str, name: str) -> bool:
    """Return whether a name contains all words of a GPU's name.

    "L40" does not contain the card "L4", and "RTX A1000" does not contain "A100".
    """
    words = r"[\s_-]*".join(map(re.escape, card.split()))
    return re.search(rf"(?<![a-z0-9]){words}(?![a-z0-9])", name, re.IGNORECASE) is not None


def measure_machine_rates(device: Device, *, again: bool = False) -> Rates:
    """Measure the rates of this machine's GPU or of one core.

    They are cached, or else measured now, which takes a second and torch. If that is impossible,
    they are those of ``get_typical_rates``.

    Args:
        again: measure even if there are cached rates.

    Raises:
        TaskTransferError: ``again`` is set, and torch is missing or does not work.
    """
    remembered = None if again else read_cached_rates(device)
    if remembered is not None:
        return remembered
    if device == "cuda" and not again and not list_devices():
        return get_typical_rates(device)
    try:
        rates = _measure_rates(device)
    except TaskTransferError:
        if again:
            raise
        return get_typical_rates(device)
    _cache_rates(rates)
    return rates


def get_typical_rates(device: Device) -> Rates:
    """Return the typical rates of a core or GPU as an estimate."""
    if device == "cuda":
        return find_card_rates(USUAL_CARD)
    return Rates("cpu", CPU, "a core", "reference values")


def read_cached_rates(device: Device) -> Rates | None:
    """Return the rates measured on this machine in the last day, or None."""
    entry = read_measurement(FILE, describe_machine(device))
    if entry is None or not _are_rates(entry.get("flops")):
        return None
    return Rates(device, entry["flops"], str(entry.get("where", "")), "measured")


def _are_rates(flops: object) -> bool:
    return (
        isinstance(flops, dict)
        and {"float32", "bfloat16"} == flops.keys()
        and all(isinstance(rate, int | float) and rate > 0 for rate in flops.values())
    )


def _cache_rates(rates: Rates) -> None:
    content = asdict(rates)
    entry = {"flops": content["flops"], "where": content["where"]}
    cache_measurement(FILE, describe_machine(rates.device), entry)


def _measure_rates(device: Device) -> Rates:
    """Measure the rates in a separate process, because torch is slow to import."""
    if find_spec("torch") is None:
        raise TaskTransferError(
            "--calibrate: The package torch is not installed here. Run the command without "
            "--calibrate."
        )
    command = [sys.executable, "-P", "-m", "tasktransfer.training.matrix_product", device]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LONGEST, check=True
        ).stdout
        content = json_text.loads(done.splitlines()[-1])
        return Rates(device, content["flops"], content["where"], "measured")
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise TaskTransferError(
            f"--calibrate: The measurement failed ({last}). Run the command in an "
            "environment with torch, or omit --calibrate to estimate from reference values."
        ) from error
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError) as error:
        raise TaskTransferError(
            f"--calibrate: The measurement failed ({error!r}). Run the command without --calibrate."
        ) from error
