"""Counts and estimates for a study, for ``tasktransfer plan``.

The remaining work agrees with ``snakemake -n``, because both determine finished nodes in the same
way.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import product

from tasktransfer.core.nodes import Node, Stage
from tasktransfer.datasets import DATASETS
from tasktransfer.operate.endpoints import describe_endpoints
from tasktransfer.operate.facts import (
    ModelSpeed,
    OtherNodes,
    Overview,
    PairTrainings,
    StudyEstimate,
    TargetTrainings,
    TrainingCounts,
    WorkCost,
)
from tasktransfer.operate.forecast.disk import estimate_disk
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.operate.forecast.other_nodes import is_answered_by_endpoint
from tasktransfer.operate.forecast.rates import Device, Rates
from tasktransfer.operate.missing_inputs import list_missing_inputs
from tasktransfer.results.node_folders import NodesOnDisk, inspect_nodes
from tasktransfer.results.records import NOUNS
from tasktransfer.results.study import Study
from tasktransfer.training.device import list_devices

NOTHING = NodesOnDisk({}, frozenset(), {}, frozenset())

WORKFLOW_SECONDS = 35.0
"""Wall time of a study's other jobs: Snakemake's start, data, tables, figures and report.

Measured with studies of one tiny training on two cores.
"""

SEVERAL = "(several)"
"""Placeholder for the target of a training that several tasks select."""


def summarise_study(
    study: Study,
    devices: int | None = None,
    rates: Rates | None = None,
    device: Device | None = None,
) -> Overview:
    """Summarise a study's runs, trainings, progress, missing data and forecast.

    ``done``, ``left`` and ``again`` are None if inputs are missing and not cached, because digests
    and thus the paths of records are unknown. Hours and disk then count everything as remaining.
    Transfers that the check of baselines may leave out are counted until it is done.

    Args:
        devices: number of parallel trainings; None for the available GPUs, or else cores.
        rates: speed of the device; None for the cached rates of this machine, or else defaults.
        device: device of the runs; None for the device in the records, or else the one here.
    """
    study = study.as_largest()
    there = NOTHING if study.has_unknown_inputs else inspect_nodes(study)
    return {
        "study": study.config.study,
        "config": study.config_file,
        "results": study.config.results,
        "synthetic": _has_synthetic_dialogues(study),
        "absent": list(study.absent),
        "lacking": [text for text in list_missing_inputs(study) if text not in study.absent],
        "runs": {
            "total": len(study.plan.runs),
            "by_method": study.plan.count_runs(),
            "choice_pending": bool(study.pending_choices),
        },
        "trainings": _summarise_trainings(study, there),
        "others": count_other_nodes(study, there),
        "endpoints": describe_endpoints(study.config),
        "estimate": _estimate_study(Estimates(study, device, rates), there, devices),
    }


def _has_synthetic_dialogues(study: Study) -> bool | None:
    """Return whether some dialogues are synthetic, or None if no data are prepared."""
    synthetic = [study.is_synthetic(dataset) for dataset in study.config.dataset_names]
    return None if None in synthetic and True not in synthetic else True in synthetic


# --- counts -------------------------------------------------------------------------------------


def count_other_nodes(study: Study, there: NodesOnDisk) -> list[OtherNodes]:
    """Count nodes other than trainings by kind: total, done and remaining."""
    nodes = [node for node in study.plan.nodes if not isinstance(node, Stage)]
    counts = Counter(NOUNS[type(node)] for node in nodes)
    done = Counter(NOUNS[type(node)] for node in nodes if node.digest in there.finished)
    return [
        {
            "kind": kind,
            "total": total,
            "done": None if study.has_unknown_inputs else done[kind],
            "left": None if study.has_unknown_inputs else total - done[kind],
        }
        for kind, total in counts.items()
    ]


def _summarise_trainings(study: Study, there: NodesOnDisk) -> TrainingCounts:
    plan = study.plan
    kinds = Counter(stage.kind for stage in plan.stages)
    done = (
        None
        if study.has_unknown_inputs
        else len(plan.stages) - len(there.list_unfinished_trainings(study))
    )
    return {
        "total": len(plan.stages),
        "without_variants": len(
            {stage.digest for run in plan.runs if not run.variant for stage in run.stages}
        ),
        "spared": sum(len(stage.also_selected) for stage in plan.stages),
        "by_kind": dict(kinds),
        "by_dataset_and_model": _count_trainings_by_pair(study),
        "done": done,
        "left": None if done is None else len(plan.stages) - done,
        "again": None if done is None else len(there.again),
        "damaged": [*there.damaged.values()],
    }


def _count_trainings_by_pair(study: Study) -> list[PairTrainings]:
    groups: dict[tuple[str, str], list[Stage]] = {pair: [] for pair in _iterate_pairs(study)}
    for stage in study.plan.stages:
        groups[stage.dataset, stage.model.name].append(stage)
    return [
        {
            "dataset": dataset,
            "model": model,
            "tasks": len({task for stage in stages for task in stage.tasks}),
            "trainings": len(stages),
        }
        for (dataset, model), stages in groups.items()
    ]


def _iterate_pairs(study: Study) -> product[tuple[str, str]]:
    """Return all pairs of dataset and model."""
    return product(study.config.dataset_names, [model.name for model in study.config.models])


def group_stages(study: Study) -> dict[tuple[str, str], list[Stage]]:
    """Group the trainings by model and algorithm, in the config's order.

    A kind of stage replaces the algorithm if no run ends with it. Empty groups are left out.
    """
    pairs = product([model.name for model in study.config.models], study.plan.groups)
    groups: dict[tuple[str, str], list[Stage]] = {pair: [] for pair in pairs}
    for stage in study.plan.stages:
        groups[stage.model.name, study.plan.get_group(stage)].append(stage)
    return {group: stages for group, stages in groups.items() if stages}


# --- estimates ----------------------------------------------------------------------------------


def _estimate_study(estimates: Estimates, there: NodesOnDisk, devices: int | None) -> StudyEstimate:
    study = estimates.study
    count, count_from = _count_devices(estimates, devices)
    left = there.list_unfinished_trainings(study)
    return {
        "device": estimates.device,
        "devices": count,
        "devices_from": count_from,
        "speed_from": _summarise_speeds(estimates),
        "rates": estimates.rates.describe(),
        "sizes_from": sorted(
            {estimates.sizes.describe_source(*pair) for pair in _iterate_pairs(study)}
        ),
        "total": _sum_costs(estimates, study.plan.nodes, count),
        "left": _sum_costs(estimates, [*left, *_select_unfinished_nodes(study, there)], count),
        "by_target": _summarise_targets(estimates, there),
        "disk_bytes": estimate_disk(estimates, left, there, count),
    }


def _count_devices(estimates: Estimates, asked: int | None) -> tuple[int, str]:
    """Return the number of trainings that run in parallel, and where it comes from."""
    if asked is not None:
        return asked, "given by --devices"
    if estimates.device == "cuda":
        pool = list_devices()
        return (len(pool), "GPUs here") if pool else (1, "no GPU here")
    usable = getattr(os, "sched_getaffinity", None)
    cores = len(usable(0)) if usable else os.cpu_count() or 1
    return cores, "cores here, one training on each"


def _summarise_speeds(estimates: Estimates) -> dict[str, ModelSpeed]:
    """Return each model's size, and the basis on which its speed is estimated."""
    sources: dict[str, ModelSpeed] = {}
    for model in estimates.study.config.models:
        precision = estimates.resolve_precision(
            model.name, estimates.study.config.training.precision
        )
        size, speed = estimates.model(model.name), estimates.speed(model.name, precision)
        sources[model.name] = {
            "parameters": size.parameters,
            "parameters_from": size.basis,
            "trained_parameters": size.trained,
            "speed_from": speed.basis,
            "precision": precision,
        }
    return sources


def _select_unfinished_nodes(study: Study, there: NodesOnDisk) -> list[Node]:
    """Return unfinished nodes other than trainings."""
    others = (node for node in study.plan.nodes if not isinstance(node, Stage))
    return [node for node in others if node.digest not in there.finished]


def _sum_costs(estimates: Estimates, nodes: Sequence[Node], devices: int) -> WorkCost:
    """Sum the costs of given nodes.

    Wall time assumes that all ``devices`` are busy until the end. It is at least the time of the
    longest chain of dependent nodes, and includes the workflow's other jobs.
    """
    costs = [estimates.estimate_cost(node) for node in nodes if isinstance(node, Stage)]
    ends: dict[str, float] = {}
    took = {node.digest: estimates.estimate_seconds(node) for node in nodes}
    for node in nodes:  # dependencies come first
        begins = max((ends.get(used.digest, 0.0) for used in node.uses), default=0.0)
        ends[node.digest] = begins + took[node.digest]
    seconds = sum(took.values())
    wall = WORKFLOW_SECONDS + max(seconds / devices, *ends.values()) if nodes else 0.0
    return {
        "trainings": len(costs),
        "samples": sum(cost.samples for cost in costs),
        "tokens": sum(cost.tokens for cost in costs),
        "evaluated_samples": sum(cost.evaluated for cost in costs),
        "evaluated_tokens": sum(cost.evaluated_tokens for cost in costs),
        "device_hours": seconds / 3600,
        "device_hours_besides": (seconds - sum(cost.seconds for cost in costs)) / 3600,
        "answered_by_endpoints": sum(map(is_answered_by_endpoint, nodes)),
        "wall_hours": wall / 3600,
    }


def _summarise_targets(estimates: Estimates, there: NodesOnDisk) -> list[TargetTrainings]:
    """Return the number and the hours of the trainings of each target.

    A training belongs to the task that selects its best epoch. A source's baseline therefore
    belongs to the source, and a training that several tasks select belongs to no single task.
    """
    study = estimates.study
    groups: dict[tuple[str, str], list[Stage]] = defaultdict(list)
    for stage in study.plan.stages:
        target = stage.measured_on[0] if len(stage.measured_on) == 1 else SEVERAL
        groups[stage.dataset, target].append(stage)
    rows: list[TargetTrainings] = []
    for dataset in study.config.dataset_names:
        shorts = {task: card.short for task, card in DATASETS[dataset].tasks.items()}
        for target, short in {**shorts, SEVERAL: SEVERAL}.items():
            if stages := groups.get((dataset, target)):
                left = [stage for stage in stages if stage.digest not in there.finished]
                rows.append(
                    {
                        "dataset": dataset,
                        "target": target,
                        "short": short,
                        "trainings": len(stages),
                        "done": None if study.has_unknown_inputs else len(stages) - len(left),
                        "left": None if study.has_unknown_inputs else len(left),
                        "device_hours": sum(estimates.estimate_cost(s).seconds for s in stages)
                        / 3600,
                        "device_hours_left": sum(estimates.estimate_cost(s).seconds for s in left)
                        / 3600,
                    }
                )
    return rows
