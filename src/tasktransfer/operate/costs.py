"""Cost of a study's finished trainings: hours, tokens, memory, energy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TypedDict

from tasktransfer.errors import format_quantity
from tasktransfer.operate.overview import group_stages
from tasktransfer.operate.overview_text import format_indented_table
from tasktransfer.results.costs import PHASES, Cost, read_cost
from tasktransfer.results.study import Study

JOULES_PER_KWH = 3.6e6


class Costs(TypedDict):
    """Hours, sums, means and maxima over some trainings; None if no training has the number."""

    trainings: int
    hours: float
    hours_train: float
    hours_dev: float
    hours_test: float
    hours_other: float
    tokens: int
    samples: int
    samples_per_second: float | None
    peak_memory_mb: float
    peak_gpu_memory_mb: float | None
    energy_kwh: float | None
    energy_metered_trainings: int
    resumed_trainings: int
    gpu_trainings: int


class GroupCosts(Costs):
    """Costs of the trainings of one model and algorithm."""

    model: str
    algorithm: str


class StudyCosts(TypedDict):
    """Costs of a study's finished trainings."""

    study: str
    results: str
    planned_trainings: int
    unread: int
    """Number of records that cannot be read."""
    groups: list[GroupCosts]
    total: Costs


def summarise_costs(study: Study) -> StudyCosts:
    """Sum the costs of a study's finished trainings, in total and per model and algorithm.

    A kind of stage replaces the algorithm if no run ends with it. Unreadable records are counted
    as ``unread``.
    """
    groups: dict[tuple[str, str], list[Cost]] = {}
    unread = 0
    for group, stages in group_stages(study).items():
        for stage in stages:
            try:
                cost = read_cost(Path(study.get_record_path(stage)))
            except FileNotFoundError:
                continue
            if cost is None:
                unread += 1
            else:
                groups.setdefault(group, []).append(cost)
    return {
        "study": study.config.study,
        "results": study.config.results,
        "planned_trainings": len(study.plan.stages),
        "unread": unread,
        "groups": [
            {"model": model, "algorithm": what, **_summarise_costs(group)}
            for (model, what), group in groups.items()
        ],
        "total": _summarise_costs([*chain.from_iterable(groups.values())]),
    }


def _summarise_costs(group: Sequence[Cost]) -> Costs:
    seconds = {name: sum(cost.seconds[name] for cost in group) for name in PHASES}
    samples = sum(cost.samples for cost in group)
    joules = [cost.joules for cost in group if cost.joules is not None]
    gpu_memory = (cost.gpu_memory for cost in group if cost.gpu_memory is not None)
    return {
        "trainings": len(group),
        "hours": sum(seconds.values()) / 3600,
        "hours_train": seconds["train"] / 3600,
        "hours_dev": seconds["dev"] / 3600,
        "hours_test": seconds["test"] / 3600,
        "hours_other": seconds["other"] / 3600,
        "tokens": sum(cost.tokens for cost in group),
        "samples": samples,
        "samples_per_second": samples / seconds["train"] if seconds["train"] else None,
        "peak_memory_mb": max((cost.memory for cost in group), default=0.0),
        "peak_gpu_memory_mb": max(gpu_memory, default=None),
        "energy_kwh": sum(joules) / JOULES_PER_KWH if joules else None,
        "energy_metered_trainings": len(joules),
        "resumed_trainings": sum(cost.resumed for cost in group),
        "gpu_trainings": sum(cost.device == "cuda" for cost in group),
    }


COLUMNS = {
    "model": "model",
    "algorithm": "algorithm",
    "trainings": "trainings",
    "hours": "hours",
    **{name: f"hours_{name}" for name in PHASES},
    "tokens": "tokens",
    "samples": "samples",
    "samples/s": "samples_per_second",
    "MiB": "peak_memory_mb",
    "GPU MiB": "peak_gpu_memory_mb",
    "kWh": "energy_kwh",
}


def as_text(seen: StudyCosts) -> str:
    """Format the costs of a study."""
    total = seen["total"]
    rows = [*seen["groups"], {"model": "all", "algorithm": "", **total}]
    lines = [
        f"study {seen['study']} ({seen['results']}/): cost of {total['trainings']:,} of "
        f"{seen['planned_trainings']:,} trainings",
        "",
        *(format_indented_table(rows, COLUMNS) if total["trainings"] else ["no record yet"]),
        "",
        "hours: time of a training's process on its device or core; other: starting, reading, "
        "loading, writing. samples/s: while training. MiB: peak memory of one training.",
    ]
    if metered := total["energy_metered_trainings"]:
        lines.append(f"kWh: for the {metered:,} trainings whose device reports its energy")
    if resumed := total["resumed_trainings"]:
        lines.append(
            f"interrupted and resumed from an epoch: {format_quantity(resumed, 'training')}"
        )
    if seen["unread"]:
        lines.append(f"left out: {format_quantity(seen['unread'], 'record')} that cannot be read")
    return "\n".join(lines) + "\n"
