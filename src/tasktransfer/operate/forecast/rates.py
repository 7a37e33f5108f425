"""How fast a machine multiplies matrices: measured in a second and remembered, or known by a card's
name. What every forecast without records stands on."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from tasktransfer.core.validation import unknown
from tasktransfer.errors import ConfigError, TaskTransferError
from tasktransfer.files import json_text, replacing
from tasktransfer.training.device import device_pool

Device = Literal["cpu", "cuda"]
Precision = Literal["float32", "bfloat16"]
Basis = Literal["measured", "by name", "reference values"]

FILE = "matrix_product.json"
REMEMBERED_SECONDS = 24 * 3600.0
"""A day: a name of a host may be another machine's tomorrow."""
LONGEST = 120.0

CPU: dict[Precision, float] = {"float32": 90e9, "bfloat16": 280e9}
"""Operations a second of a core's square matrix product, where nothing can be measured: a server's
CPU of 2023 or later, with bfloat16 units."""

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
"""Card → operations a second of a dense product in float32 and in bfloat16 by its maker's
datasheet; float32 by TF32 units where the card has them. Cards without bfloat16 units have
float32's twice."""

REACHED = 0.7
"""The share of a datasheet's rate that large products reach. Assumed: no card was at hand."""

USUAL_CARD = "A100"


@dataclass(frozen=True, slots=True)
class Rates:
    """Operations a second (two a multiplication and addition) of a large matrix product, by
    precision. ``where``: host and core, or the card, as a person reads it; ``basis``: what the
    numbers stand on."""

    device: Device
    flops: Mapping[Precision, float]
    where: str
    basis: Basis

    def sentence(self) -> str:
        """What the numbers are and stand on."""
        rates = " and ".join(f"{rate / 1e9:,.0f} GFLOP/s in {p}" for p, rate in self.flops.items())
        how = {
            "measured": "this machine's matrix product, measured",
            "by name": f"{REACHED:.0%} of the datasheet of the card by its name, not measured",
            "reference values": "a server's core of 2023, nothing is measured",
        }[self.basis]
        return f"{self.where}: {rates} ({how})"


def card_rates(name: str) -> Rates:
    """Return the rates of a GPU by its name, as its driver or a person writes it.

    Raises:
        ConfigError: no card of ``DATASHEET`` has this name.
    """
    cards = [card for card in DATASHEET if _is_named(card, name)]
    if not cards:
        raise ConfigError(
            f"--card: {unknown('card', name, tuple(DATASHEET))}. Give one of these names, or "
            f"--on gpu without --card for the rates of an {USUAL_CARD}"
        )
    card = max(cards, key=len)
    float32, bfloat16 = DATASHEET[card]
    flops: dict[Precision, float] = {"float32": REACHED * float32, "bfloat16": REACHED * bfloat16}
    return Rates("cuda", flops, card, "by name")


def _is_named(card: str, name: str) -> bool:
    """Return whether a name has a card's words in it; "L40" and "RTX A1000" are other cards."""
    words = r"[\s_-]*".join(map(re.escape, card.split()))
    return re.search(rf"(?<![a-z0-9]){words}(?![a-z0-9])", name, re.IGNORECASE) is not None


def machine_rates(device: Device, *, again: bool = False) -> Rates:
    """The rates of a core, or of the GPU, of this machine: remembered, else measured now, which
    takes a second and torch. Where that cannot be, those of ``assumed_rates``.

    Args:
        again: measure whatever is remembered.

    Raises:
        TaskTransferError: ``again``, and torch is not installed here or does not work.
    """
    remembered = None if again else remembered_rates(device)
    if remembered is not None:
        return remembered
    if device == "cuda" and not again and not device_pool():
        return assumed_rates(device)
    try:
        rates = _measured(device)
    except TaskTransferError:
        if again:
            raise
        return assumed_rates(device)
    _remember(rates)
    return rates


def assumed_rates(device: Device) -> Rates:
    """Those of a usual core or card, where nothing is measured."""
    if device == "cuda":
        return card_rates(USUAL_CARD)
    return Rates("cpu", CPU, "a core", "reference values")


def remembered_rates(device: Device) -> Rates | None:
    """What this machine was measured to reach within the last day."""
    entry = _entries().get(_machine(device))
    if entry is None or not 0 <= time.time() - entry["at"] < REMEMBERED_SECONDS:
        return None
    return Rates(device, entry["flops"], entry["where"], "measured")


def memory_file() -> Path:
    """Where rates are kept, by machine: JSON in the user's cache folder."""
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "tasktransfer" / FILE


def _machine(device: Device) -> str:
    return f"{platform.node()}, {platform.machine()}, {os.cpu_count()} cores, {device}"


def _entries() -> dict[str, dict[str, Any]]:
    """What is remembered; a damaged file is as none."""
    try:
        entries = json_text.loads(memory_file().read_bytes())
        return {name: entry for name, entry in entries.items() if _is_entry(entry)}
    except (OSError, ValueError, AttributeError, RuntimeError):  # RuntimeError: there is no home
        return {}


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("at"), int | float):
        return False
    flops = entry.get("flops")
    return (
        isinstance(entry.get("where"), str)
        and isinstance(flops, dict)
        and {"float32", "bfloat16"} == flops.keys()
        and all(isinstance(rate, int | float) and rate > 0 for rate in flops.values())
    )


def _remember(rates: Rates) -> None:
    content = asdict(rates)
    entry = {"at": time.time(), "flops": content["flops"], "where": content["where"]}
    try:
        file = memory_file()
        with replacing(file) as part:
            entries = {**_entries(), _machine(rates.device): entry}
            part.write_text(json.dumps(entries, indent=1) + "\n")
    except (OSError, RuntimeError):
        return  # measured again next time


def _measured(device: Device) -> Rates:
    """In a process of its own, since torch is heavy to import."""
    if find_spec("torch") is None:
        raise TaskTransferError("--calibrate: torch is not installed here; leave --calibrate out")
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
            f"--calibrate: the measurement failed: {last}; it needs the environment that trains "
            "(torch). Leave --calibrate out to estimate from reference values"
        ) from error
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError) as error:
        raise TaskTransferError(f"--calibrate: the measurement failed: {error!r}") from error
