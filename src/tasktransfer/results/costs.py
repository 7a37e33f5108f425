"""Cost of a node according to its record: seconds, memory, energy, hardware."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.files import json_text
from tasktransfer.results.schema import Record

PHASES = ("train", "dev", "test", "other")
"""Phases of a training; ``other`` is the time for starting, reading, loading and writing."""
RESUMED = "interrupted and resumed"


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one training.

    ``seconds`` maps phases to wall time. Memory is in MiB. ``joules`` is None if the device does
    not report its energy.
    """

    seconds: dict[str, float]
    tokens: int
    samples: int
    memory: float
    gpu_memory: float | None
    joules: float | None
    resumed: bool
    device: str


def read_cost(record: Path) -> Cost | None:
    """Read the cost of a training, or return None if the record does not contain it.

    The record is not validated: the checks in ``records`` would be too slow for a study with
    thousands of trainings.

    Raises:
        FileNotFoundError: there is no record.
    """
    try:
        provenance = json_text.loads(record.read_bytes())["provenance"]
        cost = provenance["training"]
        spent = {name: float(value) for name, value in provenance["seconds"].items()}
        seconds = {name: spent.get(name, 0.0) for name in PHASES}
        besides = sum(spent.get(name, 0.0) for name in ("read", "load", "save"))
        # For a resumed training, the total covers the last process, the phases cover all.
        seconds["other"] = max(besides, spent.get("total", 0.0) - sum(seconds.values()))
        gpu, joules = cost.get("peak_gpu_memory_mb"), cost.get("energy_joules")
        return Cost(
            seconds=seconds,
            tokens=int(cost["tokens"]),
            samples=int(cost["samples"]),
            memory=float(cost["peak_memory_mb"]),
            gpu_memory=None if gpu is None else float(gpu),
            joules=None if joules is None else float(joules),
            resumed=any(RESUMED in note for note in provenance["notes"]),
            device=str(provenance["host"]["device"]),
        )
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None


def sum_tokens(counts: Mapping[str, float]) -> float:
    """Return the total number of tokens that a prompted model has read and generated."""
    names = ("read_tokens", "generated_tokens", "prompt_tokens", "completion_tokens")
    return sum(counts.get(name, 0) for name in names)


def compute_seconds(record: Record) -> float:
    """Return a node's wall time in seconds.

    It is the recorded total, which includes the time between phases, or else the sum of the phases.
    """
    seconds = record["provenance"]["seconds"]
    return float(seconds["total"] if "total" in seconds else sum(seconds.values()))


def compute_hours(record: Record) -> float:
    """Return a node's wall time in hours."""
    return compute_seconds(record) / 3600


def describe_hardware(record: Record) -> str:
    """Describe the hardware that computed a node."""
    host = record["provenance"]["host"]
    return host["gpu"] or f"{host['threads']} thread of {host['cpu']}"
