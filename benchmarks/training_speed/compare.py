"""Measurements of every contestant on every case, interleaved over repeats, and their medians.

Repeats are outermost and contestants innermost, in rotated order, so that other load on the machine
disturbs all of them equally.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.training_speed import flops
from benchmarks.training_speed.cases import (
    BATCH,
    DATASET,
    Case,
    Contestant,
    Measured,
    Volume,
    Work,
    compute_volume,
)
from benchmarks.training_speed.inputs import Inputs, as_dict, limit_training, read_used_splits
from tasktransfer import __version__
from tasktransfer.core.nodes import SHORT
from tasktransfer.datasets import get_task
from tasktransfer.errors import TrainingError

WARM_UP_EVALUATED = 8
ROOT = Path(__file__).resolve().parents[2]
TAIL = 6
"""Number of lines shown of a failed process's output."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the measurements.

    ``updates``: measured updates per run. ``evaluate``: largest number of dev and of test instances
    by family; None for all. ``toolkit``: TLiDB's folder, or None.
    """

    contestants: tuple[Contestant, ...]
    updates: int
    warm_up: int
    repeats: int
    threads: int
    evaluate: Mapping[str, int | None]
    toolkit: Path | None
    timeout: float


@dataclass(frozen=True, slots=True)
class Turn:
    """One process to run."""

    repeat: int
    case: Case
    contestant: Contestant


def iterate_turns(
    cases: Sequence[Case], contestants: Sequence[Contestant], repeats: int
) -> Iterator[Turn]:
    """Yield all turns, repeats outermost, contestants innermost and rotated."""
    for repeat in range(repeats):
        for case in cases:
            for i in range(len(contestants)):
                yield Turn(repeat, case, contestants[(i + repeat) % len(contestants)])


def explain_absence(contestant: Contestant, toolkit: Path | None) -> str | None:
    """Return why a contestant cannot take part, with a remedy, or None if it can."""
    match contestant:
        case "tlidb" if toolkit is None:
            return (
                "no --toolkit: git clone https://github.com/alon-albalak/TLiDB and give its folder"
            )
        case "tlidb" if not (toolkit / "tlidb" / "examples" / "train.py").is_file():  # type: ignore[operator]
            return f"{toolkit} has no tlidb/examples/train.py: give the root of a clone of TLiDB"
        case "tlidb" if importlib.util.find_spec("sklearn") is None:
            return "it needs scikit-learn, which is not installed: pip install scikit-learn"
        case "hf_trainer" if importlib.util.find_spec("accelerate") is None:
            return "it needs accelerate, which is not installed: pip install accelerate"
    return None


def compare(inputs: Inputs, cases: Sequence[Case], options: Options) -> dict[str, Any]:
    """Run everything, and return all measurements and their medians as JSON.

    Raises:
        TrainingError: this trainer failed, or no contestant could be measured.
    """
    skipped = {c: why for c in options.contestants if (why := explain_absence(c, options.toolkit))}
    for contestant, why in skipped.items():
        _print_message(f"{contestant} is skipped: {why}")
    present = [c for c in options.contestants if c not in skipped]
    volumes = {case: _compute_volume(inputs, case, options) for case in cases}
    turns = list(iterate_turns(cases, present, options.repeats))
    runs: list[dict[str, Any]] = []
    failed: dict[tuple[Case, Contestant], str] = {}
    rates: dict[tuple[int, Case], dict[str, float]] = {}
    progress = Eta(turns)
    for turn in turns:
        if (turn.case, turn.contestant) in failed:
            progress.end(turn)
            continue
        if (turn.repeat, turn.case) not in rates:
            rates[turn.repeat, turn.case] = measure_matrix_rate(options.threads)
        progress.begin(turn)
        try:
            found = _run_turn(inputs, turn, volumes[turn.case], options)
        except TrainingError as error:
            if turn.contestant == "tasktransfer":
                raise
            failed[turn.case, turn.contestant] = str(error)
            _print_message(f"{turn.contestant} failed on {turn.case.name}: {error}")
        else:
            runs.append({"repeat": turn.repeat, "case": turn.case.name, **found})
            train, test = (found[f"{part}_samples"] / found[part] for part in ("train", "test"))
            _print_message(f"  {train:.1f} per second in training, {test:.1f} on test")
        progress.end(turn)
    if not runs:
        raise TrainingError("No contestant could be measured: " + "; ".join(skipped.values()))
    # The limit is the machine's undisturbed speed, so the highest measurement is used.
    names = next(iter(rates.values()))
    each = {name: [found[name] for found in rates.values()] for name in names}
    limit = {name: max(found) for name, found in each.items()}
    return {
        "schema": 1,
        "made": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "tasktransfer": __version__,
        "machine": describe_machine(options.threads),
        "matrix_rate": {"each": each, "limit": limit},
        "volumes": {c.name: {**as_dict(v), "updates": v.updates} for c, v in volumes.items()},
        "skipped": skipped,
        "failed": {f"{case.name} {contestant}": why for (case, contestant), why in failed.items()},
        "models": {family: str(folder) for family, folder in inputs.models.items()},
        "runs": runs,
        "medians": _compute_medians(inputs, cases, volumes, runs, limit),
    }


def measure_matrix_rate(threads: int) -> dict[str, float]:
    """Measure operations per second of matrix products by precision, in a new process."""
    command = [sys.executable, "-m", "benchmarks.training_speed.matrix_rate", str(threads)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=build_environment(threads)
    )
    if done.returncode:
        raise TrainingError(f"The matrix product could not be measured: {get_tail(done.stderr)}")
    rates: dict[str, float] = json.loads(done.stdout)
    return rates


# --- one process --------------------------------------------------------------------------------


def _compute_volume(inputs: Inputs, case: Case, options: Options) -> Volume:
    available = len(inputs.read_split(case, "train").ids)
    return compute_volume(options.updates, available, options.evaluate[case.family])


def _run_turn(inputs: Inputs, turn: Turn, volume: Volume, options: Options) -> dict[str, Any]:
    """Run one new process, and return its measurements with its processor time.

    Raises:
        TrainingError: it failed, or took longer than ``options.timeout`` seconds.
    """
    warm_up = Volume(min(options.warm_up * BATCH, volume.instances), 1, WARM_UP_EVALUATED)
    volumes = {"warm_up": warm_up, "measured": volume}
    with tempfile.TemporaryDirectory(prefix="tasktransfer-bench-") as scratch:
        work = Work(
            contestant=turn.contestant,
            family=turn.case.family,
            task=turn.case.task,
            config=str(inputs.config),
            release=str(inputs.release),
            encoded=str(inputs.encoded[turn.case.family].resolve()),
            checkpoint=str(inputs.models[turn.case.family].resolve()),
            toolkit=str(options.toolkit.resolve()) if options.toolkit else None,
            scratch=scratch,
            threads=options.threads,
            warm_up=as_dict(warm_up),
            measured=as_dict(volume),
            limits={part: limit_training(value) for part, value in volumes.items()},
            nodes={
                part: inputs.find_stage(turn.case, value).digest[:SHORT]
                for part, value in volumes.items()
            },
            few_sample=inputs.few_sample,
        )
        file = Path(scratch) / "work.json"
        file.write_text(json.dumps(work))
        return _measure_process(file, turn, options)


def _measure_process(file: Path, turn: Turn, options: Options) -> dict[str, Any]:
    log = file.with_name("log.txt")
    began, used = time.monotonic(), _read_processor_seconds()
    command = [sys.executable, "-m", "benchmarks.training_speed.worker", str(file), repr(began)]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True,
            env=build_environment(options.threads), cwd=file.parent,
        )  # fmt: skip
        try:
            out, _ = process.communicate(timeout=options.timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise TrainingError(
                f"The process has no result after {options.timeout:.0f} s. Set a higher --timeout."
            ) from None
        except BaseException:
            process.kill()
            process.wait()
            raise
    if process.returncode:
        raise TrainingError(get_tail(log.read_text(errors="replace")))
    measured: Measured = json.loads(out.splitlines()[-1])
    wall, used = time.monotonic() - began, _read_processor_seconds() - used
    return {"contestant": turn.contestant, "wall": wall, "processor": used, **measured}


def _read_processor_seconds() -> float:
    """Return the processor seconds of all finished child processes and their children.

    Unlike wall time, they do not depend on other load.
    """
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def build_environment(threads: int) -> dict[str, str]:
    """Return the environment of every process, with threads, no network and this package's path."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
    }


def get_tail(text: str) -> str:
    """Return the last lines of a failed process's output."""
    return " | ".join(text.strip().splitlines()[-TAIL:]) or "no output"


def describe_machine(threads: int) -> dict[str, Any]:
    """Describe the machine."""
    return {
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": threads,
    }


# --- medians ------------------------------------------------------------------------------------


def _compute_medians(
    inputs: Inputs,
    cases: Sequence[Case],
    volumes: Mapping[Case, Volume],
    runs: Sequence[Mapping[str, Any]],
    limit: Mapping[str, float],
) -> list[dict[str, Any]]:
    """Return one row per case and contestant."""
    rows = []
    for case in cases:
        forward = _count_forward_operations(inputs, case, volumes[case])
        for contestant in dict.fromkeys(run["contestant"] for run in runs):
            mine = [r for r in runs if (r["case"], r["contestant"]) == (case.name, contestant)]
            if mine:
                rows.append(
                    {
                        "case": case.name,
                        **summarise_runs(mine, forward, volumes[case].epochs, limit),
                    }
                )
    return rows


def _count_forward_operations(inputs: Inputs, case: Case, volume: Volume) -> dict[str, float]:
    """Return the forward operations of one pass over the used parts of train, dev and test."""
    shape, task = (
        flops.read_shape(inputs.read_model_config(case.family)),
        get_task(DATASET, case.task),
    )
    return {
        name: flops.count_split_flops(shape, case.family, task, split)
        for name, split in read_used_splits(inputs, case, volume).items()
    }


def summarise_runs(
    runs: Sequence[Mapping[str, Any]],
    forward: Mapping[str, float],
    epochs: int,
    limit: Mapping[str, float],
) -> dict[str, Any]:
    """Return the medians of one contestant's runs of one case.

    Args:
        forward: operations of one forward pass over ``train`` and ``test``.
        limit: the machine's operations per second, by precision.
    """

    def compute_median(value: str) -> float:
        return median(float(run[value]) for run in runs)

    train = median(run["train_samples"] / run["train"] for run in runs)
    test = median(run["test_samples"] / run["test"] for run in runs)
    gpu = [run["gpu_memory_mb"] for run in runs if run["gpu_memory_mb"] is not None]
    needed = flops.TRAINING * forward["train"] * epochs
    rate = limit[runs[0]["precision"]]
    return {
        "contestant": runs[0]["contestant"],
        "runs": len(runs),
        "train_samples_per_second": train,
        "train_spread": [min(_compute_rates(runs, "train")), max(_compute_rates(runs, "train"))],
        "dev_samples_per_second": median(_compute_rates(runs, "dev")),
        "test_samples_per_second": test,
        "start_up_seconds": compute_median("start_up"),
        "processor_seconds": compute_median("processor"),
        "memory_mb": compute_median("memory_mb"),
        "gpu_memory_mb": median(gpu) if gpu else None,
        "share_of_limit_training": needed / compute_median("train") / rate,
        "share_of_limit_test": forward["test"] / compute_median("test") / rate,
        "precision": runs[0]["precision"],
        "device": runs[0]["device"],
    }


def _compute_rates(runs: Sequence[Mapping[str, Any]], part: str) -> list[float]:
    return [run[f"{part}_samples"] / run[part] for run in runs]


# --- progress -----------------------------------------------------------------------------------


class Eta:
    """Display of the running process, and of the remaining time of all processes."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.left = list(turns)
        self.total = len(turns)
        self.seen: dict[tuple[Case, Contestant], float] = {}
        self._began = time.monotonic()

    def begin(self, turn: Turn) -> None:
        """Report that a process starts."""
        self._began = time.monotonic()
        number = self.total - len(self.left) + 1
        expected = self.estimate_seconds_left()
        left = "" if expected is None else f", about {expected / 60:.0f} min left"
        what = f"{turn.case.name} {turn.contestant}"
        _print_message(f"[{number}/{self.total}] repeat {turn.repeat + 1}: {what}{left}")

    def end(self, turn: Turn) -> None:
        """Record that a process has ended or is skipped."""
        self.seen[turn.case, turn.contestant] = time.monotonic() - self._began
        self.left.remove(turn)

    def estimate_seconds_left(self) -> float | None:
        """Estimate from earlier times of the same processes or of all, or None at the start."""
        if not self.seen:
            return None
        mean = sum(self.seen.values()) / len(self.seen)
        return sum(self.seen.get((turn.case, turn.contestant), mean) for turn in self.left)


def _print_message(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
