"""What a node took, by its record: seconds, memory, energy, hardware."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tasktransfer.files import json_text
from tasktransfer.results.schema import Record

PHASES = ("train", "dev", "test", "other")
"""Of a training; other: starting, reading, loading, writing."""
RESUMED = "interrupted and resumed"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one training took: ``seconds`` by phase, memory in MiB; ``joules`` are None where the
    device does not report them."""

    seconds: dict[str, float]
    tokens: int
    samples: int
    memory: float
    gpu_memory: float | None
    joules: float | None
    resumed: bool
    device: str


def cost_in(record: Path) -> Cost | None:
    """What a training took. Read without the checks of ``records``, which take longer, so that a
    study of thousands can be asked; None: the record does not tell.

    Raises:
        FileNotFoundError: there is no record.
    """
    try:
        provenance = json_text.loads(record.read_bytes())["provenance"]
        provenance |= provenance.get("training", {})  # older records have it all in one
        spent = {name: float(value) for name, value in provenance["seconds"].items()}
        seconds = {name: spent.get(name, 0.0) for name in PHASES}
        besides = sum(spent.get(name, 0.0) for name in ("read", "load", "save"))
        # A resumed training's total is that of its last process, its phases are those of all.
        seconds["other"] = max(besides, spent.get("total", 0.0) - sum(seconds.values()))
        gpu, joules = provenance.get("peak_gpu_memory_mb"), provenance.get("energy_joules")
        return Cost(
            seconds=seconds,
            tokens=int(provenance["tokens"]),
            samples=int(provenance["samples"]),
            memory=float(provenance["peak_memory_mb"]),
            gpu_memory=None if gpu is None else float(gpu),
            joules=None if joules is None else float(joules),
            resumed=any(RESUMED in note for note in provenance["notes"]),
            device=str(provenance["host"]["device"]),
        )
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None


def seconds_of(record: Record) -> float:
    """What a node of any kind took: its own total where it gives one, which holds what lies
    between the phases too."""
    seconds = record["provenance"]["seconds"]
    return float(seconds["total"] if "total" in seconds else sum(seconds.values()))


def hours_of(record: Record) -> float:
    """The same in hours."""
    return seconds_of(record) / 3600


def hardware_of(record: Record) -> str:
    """What it was computed on, for people."""
    host = record["provenance"]["host"]
    return host["gpu"] or f"{host['threads']} thread of {host['cpu']}"
