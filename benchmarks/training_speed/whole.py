"""Measure a whole few-sample baseline from process start to record, and estimate the paper's study.

The baseline is the paper's: 30 epochs of all its training instances, dev after each epoch, the
whole test set, `tasktransfer train` in a separate process. It belongs to the paper's whole study
(17 tasks, three models, all algorithms, five seeds: 6,195 trainings). The cost of the grid is
estimated by `tasktransfer plan` from that study's records.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.training_speed.cases import DATASET, LENGTHS, Case
from benchmarks.training_speed.compare import build_environment, describe_machine, get_tail
from benchmarks.training_speed.inputs import Source, prepare_inputs
from tasktransfer.config import TINY_WORLD
from tasktransfer.core.identity import compute_digest
from tasktransfer.core.nodes import SHORT, Stage
from tasktransfer.core.specs import FAMILIES
from tasktransfer.datasets import DATASETS
from tasktransfer.designs import open_study
from tasktransfer.errors import DataError, TrainingError
from tasktransfer.files import replace_file
from tasktransfer.operate.overview import summarise_study
from tasktransfer.results.state import RECORD
from tasktransfer.results.study import Study

EPOCHS = {"DailyDialog": 30, "Friends": 20}
SEEDS = 5


def measure_baselines(
    source: Source, cases: Sequence[Case], threads: int, epochs: int | None = None
) -> dict[str, Any]:
    """Train the cases' baselines completely, and return their seconds and the cost of the study.

    Args:
        epochs: number of epochs that replaces the paper's for a trial, without the grid's cost.

    Raises:
        TrainingError: a training failed.
    """
    # The study can be opened only if each family has a model.
    every = [*cases, *(Case(f, cases[0].task) for f in FAMILIES)]
    inputs = prepare_inputs(source, list(dict.fromkeys(every)))
    study = _open_paper_study(
        source, {f: str(p.resolve()) for f, p in inputs.models.items()}, epochs
    )
    found = []
    for case in cases:
        stage = _find_baseline(study, case)
        print(f"training {case.name}, {stage.training.epochs} epochs", file=sys.stderr, flush=True)
        _place_ids(study, case, inputs.encoded[case.family])
        wall = _train_stage(study, stage, threads)
        record = json.loads(Path(study.get_record_path(stage)).read_bytes())
        found.append({"case": case.name, "wall": wall, **_describe_record(record)})
    return {
        "schema": 1,
        "made": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": describe_machine(threads),
        "baselines": found,
        "grid": None if epochs else _estimate_grid(study),
    }


def format_markdown(result: Mapping[str, Any]) -> str:
    """Format the baselines and the grid's cost."""
    head = ("case", "from start to record, s", "training", "dev", "test", "rest", "training /s")
    rows = [head, tuple("---" if i == 0 else "---:" for i in range(len(head)))]
    for one in result["baselines"]:
        seconds = one["seconds"]
        parts = [seconds["train"], seconds["dev"], seconds["test"]]
        numbers = [one["wall"], *parts, one["wall"] - sum(parts), one["samples_per_second"]]
        rows.append((f"{one['case']}, {one['epochs']} epochs", *(f"{n:.1f}" for n in numbers)))
    lines = [f"## Whole baselines, {result['made']}", ""]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    grid = result["grid"]
    if grid:
        bases = "; ".join(f"{model}: {basis}" for model, basis in grid["speed_from"].items())
        lines += [
            "",
            f"The paper's grid, {', '.join(grid['datasets'])}: {grid['trainings']:,} trainings, "
            f"{grid['device_hours']:,.1f} hours on one such device ({grid['device']}). "
            f"Speeds: {bases}.",
        ]
    return "\n".join(lines) + "\n"


# --- the paper's study --------------------------------------------------------------------------


def _open_paper_study(source: Source, models: Mapping[str, str], epochs: int | None) -> Study:
    datasets = [name for name in DATASETS if _has_release(source.release, name)]
    value = {
        "study": "bench: the paper's grid",
        "results": str((source.work / "whole").resolve()),
        "data": {
            "release": source.release
            if source.release == TINY_WORLD
            else str(Path(source.release).resolve()),
            "few_sample": source.release != TINY_WORLD,
        },
        "datasets": {name: {"tasks": "all"} for name in datasets},
        "models": [
            {"name": f, "family": f, "checkpoint": models[f], "max_length": LENGTHS[f]}
            for f in FAMILIES
        ],
        "algorithms": "all",
        "seeds": SEEDS,
        "training": {"epochs": {name: epochs or EPOCHS[name] for name in datasets}},
    }
    file = source.work / f"paper-{compute_digest(value)[:8]}.yaml"
    with replace_file(file) as part:
        part.write_text(json.dumps(value, indent=1))
    return open_study(file)


def _has_release(release: str, dataset: str) -> bool:
    if release == TINY_WORLD:
        return True
    try:
        DATASETS[dataset].reader.find(Path(release))
    except DataError:
        return dataset == DATASET  # without it, opening the study says what is missing
    return True


def _find_baseline(study: Study, case: Case) -> Stage:
    return next(
        stage
        for stage in study.plan.stages
        if stage.kind == "baseline"
        and stage.train_tasks == (case.task,)
        and stage.model.family == case.family
    )


def _place_ids(study: Study, case: Case, encoded: Path) -> None:
    """Copy token ids to the folder in which the forecast counts tokens."""
    place = Path(study.get_encoded_folder(study.get_released_data(DATASET), case.family))
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(encoded, place)


def _train_stage(study: Study, stage: Stage, threads: int) -> float:
    """Return the seconds from the start of ``tasktransfer train`` to its end."""
    out = Path(study.get_node_folder(stage))
    shutil.rmtree(out, ignore_errors=True)
    command = [
        sys.executable, "-m", "tasktransfer", "train", "--config", study.config_file,
        "--node", stage.digest[:SHORT], "--threads", str(threads),
    ]  # fmt: skip
    began = time.monotonic()
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=build_environment(threads)
    )
    if done.returncode or not (out / RECORD).exists():
        raise TrainingError(f"{stage.label}: {get_tail(done.stderr)}")
    return time.monotonic() - began


def _describe_record(record: Mapping[str, Any]) -> dict[str, Any]:
    made, cost = record["provenance"], record["provenance"]["training"]
    return {
        "seconds": made["seconds"],
        "epochs": len(record["training"]["rounds"]),
        "sizes": record["sizes"],
        "samples_per_second": cost["samples_per_second"],
        "memory_mb": cost["peak_memory_mb"],
        "gpu_memory_mb": cost["peak_gpu_memory_mb"],
        "gpu": made["host"]["gpu"],
        "precision": made["host"]["precision"],
        "score": next(iter(record["results"].values()))["score"],
    }


def _estimate_grid(study: Study) -> dict[str, Any]:
    """Return the estimate of ``tasktransfer plan`` for all trainings on one device."""
    seen = summarise_study(study, devices=1)
    total = seen["estimate"]["total"]
    return {
        "datasets": list(study.config.dataset_names),
        "device": seen["estimate"]["device"],
        "trainings": total["trainings"],
        "device_hours": total["device_hours"],
        "speed_from": {k: v["speed_from"] for k, v in seen["estimate"]["speed_from"].items()},
    }
