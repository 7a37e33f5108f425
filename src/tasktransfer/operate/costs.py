"""What the finished trainings of a study took: hours, tokens, memory, energy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasktransfer import json_text
from tasktransfer.operate.overview_text import table
from tasktransfer.results.study import Study
from tasktransfer.tables.numbers import counted

PHASES = ("train", "dev", "test")
JOULES_A_KWH = 3.6e6
RESUMED = "interrupted and resumed"


@dataclass(slots=True)
class Costs:
    """Sums over some trainings. ``energy``: of those that measured it, ``metered`` many."""

    trainings: int = 0
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys((*PHASES, "other"), 0.0)
    )
    tokens: int = 0
    samples: int = 0
    memory_mb: float = 0.0
    gpu_memory_mb: float | None = None
    energy: float = 0.0
    metered: int = 0
    resumed: int = 0
    on_gpu: int = 0

    def add(self, made: dict[str, Any]) -> None:
        """Add one training by its record's provenance."""
        phases = {name: float(made["seconds"].get(name, 0.0)) for name in PHASES}
        known = sum(phases.values())
        # A resumed training's total is that of its last process, its phases are those of all.
        phases["other"] = max(0.0, float(made["seconds"].get("total", known)) - known)
        gpu, joules = made.get("peak_gpu_memory_mb"), made.get("energy_joules")
        self.trainings += 1
        for name, value in phases.items():
            self.seconds[name] += value
        self.tokens += int(made["tokens"])
        self.samples += int(made["samples"])
        self.memory_mb = max(self.memory_mb, float(made["peak_memory_mb"]))
        if gpu is not None:
            self.gpu_memory_mb = max(self.gpu_memory_mb or 0.0, float(gpu))
        self.energy += joules or 0.0
        self.metered += joules is not None
        self.resumed += any(RESUMED in note for note in made["notes"])
        self.on_gpu += made["host"]["device"] == "cuda"

    def row(self) -> dict[str, Any]:
        """As plain data: hours, means and sums."""
        return {
            "trainings": self.trainings,
            "hours": sum(self.seconds.values()) / 3600,
            **{f"hours_{name}": value / 3600 for name, value in self.seconds.items()},
            "tokens": self.tokens,
            "samples": self.samples,
            "samples_per_second": self.samples / self.seconds["train"]
            if self.seconds["train"]
            else None,
            "peak_memory_mb": self.memory_mb,
            "peak_gpu_memory_mb": self.gpu_memory_mb,
            "energy_kwh": self.energy / JOULES_A_KWH if self.metered else None,
            "energy_metered_trainings": self.metered,
            "resumed_trainings": self.resumed,
            "gpu_trainings": self.on_gpu,
        }


def costs(study: Study) -> dict[str, Any]:
    """What the study's finished trainings took, per model and algorithm (a kind of stage where no
    run ends with it), and in all. Records that cannot be read are counted as ``unread``."""
    groups: dict[tuple[str, str], Costs] = {}
    total, unread = Costs(), 0
    for stage in study.plan.stages:
        what = study.plan.group_of(stage)
        try:
            made = json_text.loads(Path(study.record(stage)).read_bytes())["provenance"]
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            unread += 1
            continue
        one = Costs()
        try:
            one.add(made)
        except (ValueError, KeyError, TypeError, AttributeError):
            unread += 1
            continue
        groups.setdefault((stage.model.name, what), Costs()).add(made)
        total.add(made)
    return {
        "study": study.config.study,
        "results": study.config.results,
        "planned_trainings": len(study.plan.stages),
        "unread": unread,
        "groups": [
            {"model": model, "algorithm": what, **groups[model, what].row()}
            for model, what in _order(study, groups)
        ],
        "total": total.row(),
    }


def _order(study: Study, groups: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    there = set(groups)
    return [
        (model.name, what)
        for model in study.config.models
        for what in study.plan.groups
        if (model.name, what) in there
    ]


def as_text(seen: dict[str, Any]) -> str:
    """The costs of a study for people."""
    total = seen["total"]
    lines = [
        f"study {seen['study']} ({seen['results']}/): what {total['trainings']:,} of "
        f"{seen['planned_trainings']:,} trainings took",
        "",
    ]
    named = [*seen["groups"], {"model": "all", "algorithm": "", **total}]
    lines += table([_shown(row) for row in named]) if total["trainings"] else ["no record yet"]
    lines += ["", *_remarks(seen)]
    return "\n".join(lines).rstrip() + "\n"


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": row["model"],
        "algorithm": row["algorithm"],
        "trainings": row["trainings"],
        "hours": row["hours"],
        **{name: row[f"hours_{name}"] for name in (*PHASES, "other")},
        "tokens": row["tokens"],
        "samples": row["samples"],
        "samples/s": _whole(row["samples_per_second"]),
        "MiB": _whole(row["peak_memory_mb"]),
        "GPU MiB": _whole(row["peak_gpu_memory_mb"]),
        "kWh": row["energy_kwh"],
    }


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _remarks(seen: dict[str, Any]) -> list[str]:
    total = seen["total"]
    lines = [
        "hours: of a training's process on its device or core; other: starting, reading, loading, "
        "writing. samples/s: while training. MiB: the most that one training held."
    ]
    if total["energy_metered_trainings"]:
        lines.append(
            f"kWh: of the {total['energy_metered_trainings']:,} trainings whose device tells it"
        )
    if total["resumed_trainings"]:
        resumed = counted(total["resumed_trainings"], "training")
        lines.append(f"interrupted, and went on from an epoch: {resumed}")
    if seen["unread"]:
        lines.append(f"left out: {counted(seen['unread'], 'record')} that cannot be read")
    return lines
