"""Run records with known scores, for tests of everything that reads records.

These are constructed, never trained; they live in temporary folders only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tasktransfer.core.digests import digest_of
from tasktransfer.core.nodes import RECIPE_VERSION
from tasktransfer.results.records import Record

FAMILIES = {"bert": "encoder", "gpt2": "decoder", "t5": "encoder_decoder"}
KINDS = {
    "baseline": "baseline",
    "pretrain_finetune": "finetune",
    "multitask": "multitask",
    "multitask_finetune": "finetune",
}
ALGORITHMS = ("pretrain_finetune", "multitask", "multitask_finetune")

Run = tuple[str, str, str, tuple[str, ...], str, int]
"""dataset, model, algorithm, sources, target, seed"""
Scorer = Callable[[Run], float]


def make_record(run: Run, score: float, **changes: Any) -> Record:
    """A valid record of a run. ``changes`` replace top-level keys."""
    dataset, model, algorithm, sources, target, seed = run
    family = FAMILIES.get(model, "encoder")
    tasks = sorted({target, *sources} if algorithm == "multitask" else {target})
    identity = {"run": [dataset, model, algorithm, list(sources), target, seed]}
    record: dict[str, Any] = {
        "schema": 1,
        "stage": {
            "digest": digest_of(identity),
            "kind": KINDS[algorithm],
            "label": target,
            "dataset": dataset,
            "model": model,
            "family": family,
            "train_tasks": tasks,
            "select_on": [target],
            "seed": seed,
            "parent": digest_of("parent") if KINDS[algorithm] == "finetune" else None,
            "identity": identity,
        },
        "run": {
            "dataset": dataset,
            "model": model,
            "family": family,
            "algorithm": algorithm,
            "sources": list(sources),
            "target": target,
            "seed": seed,
        },
        "synthetic": False,
        "few_sample": True,
        "data_revision": "r1",
        "sizes": {task: {"train": 100, "dev": 10, "test": 4} for task in tasks},
        "epochs": [_epoch(1, tasks, target, score / 2), _epoch(2, tasks, target, score)],
        "best_epoch": 2,
        "test": {target: {"metrics": {"accuracy": score}, "score": score, "instances": 4}},
        "score": score,
        "dev_score": score,
        "predictions": None,
        "provenance": make_provenance(),
    }
    record.update(changes)
    return record  # type: ignore[return-value]


def make_provenance(**changes: Any) -> dict[str, Any]:
    provenance: dict[str, Any] = {
        "tasktransfer": "0.1.0",
        "recipe": RECIPE_VERSION,
        "versions": {"python": "3.11.2", "torch": "2.13.0"},
        "commit": "0" * 40,
        "dirty": False,
        "config_digest": "c" * 64,
        "study": "constructed",
        "host": {
            "platform": "Linux",
            "cpu": "test",
            "cores": 2,
            "gpu": None,
            "device": "cpu",
            "precision": "float32",
            "threads": 1,
        },
        "started": "2024-01-02T03:04:05Z",
        "seconds": {"train": 1.5, "test": 0.5},
        "tokens": 1000,
        "samples": 200,
        "samples_per_second": 133.3,
        "tokens_per_second": 666.7,
        "peak_memory_mb": 300.0,
        "peak_gpu_memory_mb": None,
        "notes": [],
    }
    return provenance | changes


def _epoch(number: int, tasks: Iterable[str], target: str, score: float) -> dict[str, Any]:
    return {
        "epoch": number,
        "train_loss": dict.fromkeys(tasks, 1.0 / number),
        "dev": {target: {"accuracy": score}},
        "selection_score": score,
        "seconds": 0.75,
    }


def record_path(run: Run) -> str:
    """Where the factory puts a run's record, relative to the results folder."""
    dataset, model, algorithm, sources, target, seed = run
    return f"stages/{dataset}/{model}/{algorithm}/{'+'.join(sources)}_{target}/{seed}/metrics.json"


def single_source_runs(
    dataset: str,
    models: Iterable[str],
    tasks: Iterable[str],
    seeds: Iterable[int],
    algorithms: Iterable[str] = ALGORITHMS,
) -> list[Run]:
    """Every baseline and every ordered pair, baselines first, as a plan lists them."""
    tasks, seeds, models = list(tasks), list(seeds), list(models)
    runs: list[Run] = []
    for model in models:
        for seed in seeds:
            runs += [(dataset, model, "baseline", (), target, seed) for target in tasks]
            runs += [
                (dataset, model, algorithm, (source,), target, seed)
                for algorithm in algorithms
                for source in tasks
                for target in tasks
                if source != target
            ]
    return runs


def write_study(
    folder: Path,
    runs: Iterable[Run],
    score: Scorer,
    *,
    leave_out: Callable[[Run], bool] = lambda run: False,
    shorts: Mapping[str, str] | None = None,
    **changes: Any,
) -> Path:
    """Write the records of a study and its plan file; gives the plan's path.

    ``leave_out`` says which planned runs leave no record. Written without ``write_record``, whose
    fsync takes longer than the rest of a test; the records are checked when they are read.
    """
    runs = list(runs)
    for run in runs:
        if not leave_out(run):
            path = folder / record_path(run)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(make_record(run, score(run), **changes), indent=1))
    plan = folder / "plan.json"
    plan.write_text(json.dumps(make_plan(runs, shorts)))
    return plan


def make_plan(runs: Iterable[Run], shorts: Mapping[str, str] | None = None) -> dict[str, Any]:
    keys = ("dataset", "model", "algorithm", "sources", "target", "seed")
    listed = [dict(zip(keys, run, strict=True)) | {"record": record_path(run)} for run in runs]
    return {
        "study": "constructed",
        "config_digest": "c" * 64,
        "shorts": dict(shorts or {}),
        "runs": listed,
    }
