"""Training of one stage, from its inputs to its record: read, load, train, test, write.

The record is written last and atomically: a stage whose ``metrics.json`` exists is complete, and a
training that is killed leaves nothing that looks finished.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import torch

from tasktransfer import metrics
from tasktransfer.core.identity import compute_digest
from tasktransfer.core.nodes import Stage
from tasktransfer.encoding.encoded import EncodedSplit, read_split
from tasktransfer.encoding.manifest import is_synthetic, read_manifest
from tasktransfer.errors import DataError
from tasktransfer.models.encoder import Encoder
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.fitted_heads import fit_heads
from tasktransfer.models.parts import load_trained_state
from tasktransfer.results.artefacts import compute_checksums
from tasktransfer.results.records import write_record
from tasktransfer.results.rounds import (
    CHECKPOINT,
    ROUNDS,
    get_selected_round_folder,
    list_kept_rounds,
    list_missing_rounds,
)
from tasktransfer.results.rows import Row, write_rows
from tasktransfer.results.schema import Record, RowsFile
from tasktransfer.results.state import RECORD
from tasktransfer.tasks.card import Task
from tasktransfer.tasks.initial_heads import select_fitted_tasks
from tasktransfer.training.energy import start_energy_meter
from tasktransfer.training.evaluate import Evaluation, evaluate_split
from tasktransfer.training.hardware import Hardware
from tasktransfer.training.job import Job
from tasktransfer.training.loop import Best, train
from tasktransfer.training.progress import Progress
from tasktransfer.training.record import (
    Clock,
    build_provenance,
    build_record,
    count_split_instances,
    count_trainable_parameters,
)
from tasktransfer.training.resume import Snapshots, TrainingState, read_min_seconds
from tasktransfer.training.samplers import Schedule
from tasktransfer.training.setup import Setup
from tasktransfer.training.starts import list_tasks, load_start
from tasktransfer.training.tracking import open_tracker


def train_stage(job: Job) -> Record:
    """Train a stage, and write its record, predictions and optional checkpoint.

    Raises:
        DataError: an encoded split is missing or empty.
        ModelError: the checkpoint cannot be loaded.
        ConfigError: the stage specifies a part, a measure or a merge that is not possible.
        TrainingError: the loss is not a finite number.
        MemoryShortageError: not even one instance at a time fits into memory.
        StorageError: the disk is full or cannot be written.
    """
    started, began = datetime.now(UTC), time.perf_counter()
    clock: Clock = {}
    stage = job.stage
    hardware = Hardware(stage.training.precision, stage.training.deterministic, job.threads)
    device = hardware.prepare_device()
    joules = start_energy_meter(device)
    progress_label = f"{stage.dataset} {stage.model.name} {stage.label} seed {stage.seed}"
    with _measure_time(clock, "read"):
        tasks = list_tasks(stage)
        synthetic = is_synthetic(job.encoded, read_manifest(job.encoded))
        splits = _read_splits(job, tasks)
    train_splits = {t: splits[t, "train"] for t in stage.train_tasks}
    dev_splits = {t: splits[t, "dev"] for t in stage.measured_on}
    work = _count_examples(Schedule.build(stage, train_splits), splits)
    progress = Progress(work, progress_label)
    notes: list[str] = []

    def note(text: str) -> None:
        notes.append(text)
        progress.print_message(text)

    with _measure_time(clock, "load"):
        model = load_start(job, tasks, device, note)
        setup = hardware.choose_setup(model, stage.model.family, device, note)
        _fit_new_heads(model, stage, tasks, train_splits, setup)
    learnable = count_trainable_parameters(model)
    snapshots = Snapshots(
        job.out,
        collect_resume_facts(stage, setup, model),
        progress.print_message,
        least=read_min_seconds(),
        refused=partial(_describe_missing_rounds, job),
    )
    keeps = job.keeps_rounds or bool(list_kept_rounds(job.out))
    keep_round = partial(_keep_round, model, job.out / ROUNDS, stage) if keeps else None
    with open_tracker(job, joules) as on_round:
        trained = train(
            *(model, stage, tasks, train_splits, dev_splits, setup, progress, snapshots),
            keep_round,
            on_round,
        )
    _remove_rounds_after(job.out, trained.last)
    clock["train"], clock["dev"] = trained.train_seconds, trained.dev_seconds
    clock["test"] = 0.0
    job.out.mkdir(parents=True, exist_ok=True)
    tested: dict[str, Evaluation] = {}
    with _replace_folder(job.out / CHECKPOINT) if job.save_checkpoint else nullcontext() as folder:
        for best in trained.best:
            load_trained_state(model.module, best.weights)
            with _measure_time(clock, "test"):
                tested |= _evaluate_best_round(job, model, best, tasks, splits, setup, progress)
            if folder is not None:
                with _measure_time(clock, "save"):
                    _save_best_round(model, stage, best, folder)
    # The wall clock may jump, and a record with negative time is invalid: use a monotonic clock.
    clock["total"] = time.perf_counter() - began
    record = build_record(
        job,
        trained,
        tested,
        sizes=count_split_instances(splits),
        synthetic=synthetic,
        rows=_write_rows(job, tasks, splits, tested) if tested else None,
        artefacts=compute_checksums(job.out, [*[CHECKPOINT] * job.save_checkpoint, ROUNDS]),
        provenance=build_provenance(
            job,
            trained,
            model,
            setup,
            learnable=learnable,
            started=started,
            clock=clock,
            joules=joules(),
            notes=notes,
        ),
    )
    write_record(job.out / RECORD, record)
    snapshots.clear()
    results = record["results"].items()
    scores = ", ".join(f"{task} {result['score']:.2f}" for task, result in results)
    dev = ", ".join(f"{best.score:.2f}" for best in trained.best)
    progress.print_message(f"done: dev {dev}, test {scores or 'not scored'}")
    return record


@contextmanager
def _measure_time(clock: Clock, phase: str) -> Iterator[None]:
    """Add the wall time of the block to a clock, under a phase's name."""
    began = time.perf_counter()
    yield
    clock[phase] = clock.get(phase, 0.0) + time.perf_counter() - began


# --- before -------------------------------------------------------------------------------------


def collect_resume_facts(stage: Stage, setup: Setup, model: FamilyModel) -> dict[str, str]:
    """Collect the facts on which a stored state must agree before a training resumes from it."""
    weights = [[name, [*weight.shape]] for name, weight in model.module.named_parameters()]
    return {
        "stage": stage.digest,
        "device": setup.device.type,
        "precision": setup.precision,
        "torch": str(torch.__version__),  # a plain str, since weights_only rejects its subclass
        # The optimiser identifies weights by their index and does not check their shapes.
        "weights": compute_digest(weights),
    }


def _read_splits(job: Job, tasks: Mapping[str, Task]) -> dict[tuple[str, str], EncodedSplit]:
    """Read all splits that the stage needs, by (task, split)."""
    stage = job.stage
    limits = {
        "train": stage.training.limit_train,
        "dev": stage.training.limit_dev,
        "test": stage.training.limit_test,
    }
    wanted = [(t, "train") for t in stage.train_tasks]
    wanted += [(t, "dev") for t in stage.measured_on]
    wanted += [(t, "test") for t in stage.tested]
    splits = {}
    for task, split in wanted:
        encoded = read_split(job.encoded, task, split).limit_instances(limits[split])
        if not len(encoded):
            raise DataError(
                f"{job.encoded}: The {split} split of {task} has no instances, so it cannot "
                "be used for training or evaluation. Remove the task from the study."
            )
        splits[task, split] = encoded
    return splits


def _fit_new_heads(
    model: FamilyModel,
    stage: Stage,
    tasks: Mapping[str, Task],
    splits: Mapping[str, EncodedSplit],
    setup: Setup,
) -> None:
    """Fit the heads that are not copied from an earlier stage.

    Nothing is fitted if heads are initialised at random, or if the model is not an encoder.
    """
    if not isinstance(model, Encoder):
        return
    new = {name: tasks[name] for name in stage.new_heads}
    new = select_fitted_tasks(new, stage.training.head_initialization)
    setup.eval_budget.run_within_memory(
        lambda tokens: fit_heads(model, new, splits, tokens), undo=lambda: None
    )


def _count_examples(schedule: Schedule, splits: Mapping[tuple[str, str], EncodedSplit]) -> int:
    """Return the number of examples that a training without early stopping processes."""
    times = {"train": schedule.epochs, "dev": schedule.rounds, "test": 1}
    return round(sum(len(examples) * times[split] for (_, split), examples in splits.items()))


# --- after --------------------------------------------------------------------------------------


def _evaluate_best_round(
    job: Job,
    model: FamilyModel,
    best: Best,
    tasks: Mapping[str, Task],
    splits: Mapping[tuple[str, str], EncodedSplit],
    setup: Setup,
    progress: Progress,
) -> dict[str, Evaluation]:
    """Evaluate a best round's model on the test sets of its selection."""
    scoring = job.stage.training.fidelity.scoring
    return {
        task: evaluate_split(
            model, tasks[task], splits[task, "test"], setup, scoring, progress.count_instances
        )
        for task in job.stage.list_tested_tasks(best.selection)
    }


def _save_best_round(model: FamilyModel, stage: Stage, best: Best, folder: Path) -> None:
    """Save a best round's model in its subfolder of a checkpoint."""
    path = get_selected_round_folder(folder, stage.list_identifying_tasks(best.selection))
    path.mkdir(exist_ok=True)
    model.save(path)


def _keep_round(model: FamilyModel, folder: Path, stage: Stage, number: int) -> None:
    """Save a round's checkpoint if the stage keeps it or has kept it before.

    Training again for other rounds therefore removes none, and all checkpoints come from the same
    trajectory.
    """
    path = folder / str(number)
    if stage.keeps_round(number) or path.is_dir():
        with _replace_folder(path) as building:
            model.save(building)


def _remove_rounds_after(folder: Path, last: int) -> None:
    """Remove checkpoints of later rounds, which an earlier and longer attempt has left."""
    for number in (number for number in list_kept_rounds(folder) if number > last):
        shutil.rmtree(folder / ROUNDS / str(number), ignore_errors=True)


def _describe_missing_rounds(job: Job, state: TrainingState) -> str:
    """Describe missing checkpoints without which a training cannot resume from a state.

    Return an empty string if none is missing, or if the job keeps no rounds.
    """
    if not job.keeps_rounds:
        return ""
    gone = list_missing_rounds(job.out, job.stage, state["history"]["rounds"][-1]["round"])
    return f"The checkpoints of rounds {', '.join(map(str, gone))} are missing" if gone else ""


@contextmanager
def _replace_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, which replaces ``folder`` at the end of the block.

    A checkpoint folder is therefore always complete.
    """
    building = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    try:
        yield building
        shutil.rmtree(folder, ignore_errors=True)
        building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _write_rows(
    job: Job,
    tasks: Mapping[str, Task],
    splits: Mapping[tuple[str, str], EncodedSplit],
    tested: Mapping[str, Evaluation],
) -> RowsFile:
    rows = []
    for name, evaluation in tested.items():
        split = splits[name, "test"]
        each = metrics.score_instances(tasks[name], evaluation.predictions, split.targets)
        rows += [
            Row(
                index=i,
                task=name,
                instance_id=split.ids[i],
                prediction=evaluation.predictions[i],
                gold=split.targets[i],
                score=score,
                cluster=split.dialogue_ids[i],
            )
            for i, score in enumerate(each)
        ]
    return write_rows(job.out, rows, digest=job.stage.digest, dataset=job.stage.dataset)
