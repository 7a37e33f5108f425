"""One attempt at a stage: decide whether to train, lease a device, train, and log the outcome.

Standard library only until the device is leased: torch must see only that device.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tasktransfer import errors
from tasktransfer.core.nodes import Stage, merge_selections
from tasktransfer.errors import TaskTransferError, as_fixable_error
from tasktransfer.files import remove_partial_files
from tasktransfer.results.damage import find_damage, set_files_aside
from tasktransfer.results.records import (
    describe_unrecorded_selections,
    list_selections,
    read_record,
)
from tasktransfer.results.rounds import CHECKPOINT, list_missing_rounds, read_last_round
from tasktransfer.results.state import CALL, RECORD, claim_folder, read_history, record_event
from tasktransfer.training.device import lease_device, list_devices
from tasktransfer.training.job import Job

RETRIED_ERRORS = frozenset({"MemoryShortageError", "StorageError"})
"""Errors after which another attempt may succeed.

All other errors of this package follow from the input, and the same input fails again. A killed
process (for example by a lost node) leaves no error. Foreign errors come from a bug or the machine.
Both are tried again."""


def train_if_needed(job: Job) -> None:
    """Train a stage unless its training is already finished.

    A stage that failed in the same call of the workflow (``CALL``) because of its input is not
    tried again.

    Raises:
        TaskTransferError: an error of ``training.run.train_stage``, or the error of the previous
            attempt.
    """
    call = os.environ.get(CALL)
    with claim_folder(job.out, _print_message, label=job.stage.label) as tell:
        problem = find_damage(job.out, job.stage.digest, "all")
        if problem is None:
            job = replace(job, stage=add_recorded_selections(job.stage, job.out))
        if problem is None and is_trained(job):
            _print_message(f"{job.out}: The stage is already trained.")
            return
        if call:
            _raise_repeated_error(job, call)
        remove_partial_files(job.out)
        if problem is not None:
            _set_record_aside(job.out, problem)
        record_event(job.out, "started", call=call, digest=job.stage.digest)
        try:
            with lease_device(list_devices()) as device:
                tell(device=device or "cpu")
                _train(job)
        except KeyboardInterrupt:
            record_event(job.out, "interrupted")
            raise
        except Exception as error:
            cause = as_fixable_error(error) or error
            with suppress(OSError):  # on a full disk this cannot be written either
                record_event(
                    job.out, "failed", cause=type(cause).__name__, error=str(cause), call=call
                )
            if cause is error:
                raise
            raise cause from error
        record_event(job.out, "finished", digest=job.stage.digest)


def _train(job: Job) -> None:
    # Set this before torch is imported: its libraries read it once.
    os.environ["OMP_NUM_THREADS"] = str(max(1, job.threads))
    from tasktransfer.training.run import train_stage

    train_stage(job)


def is_trained(job: Job) -> bool:
    """Return whether the stage's record and all required checkpoints exist."""
    wanted = [RECORD, *[CHECKPOINT] * job.save_checkpoint]
    if not all((job.out / name).exists() for name in wanted):
        return False
    if describe_unrecorded_selections(job.stage, read_record(job.out / RECORD)):
        return False
    return not (
        job.keeps_rounds and list_missing_rounds(job.out, job.stage, read_last_round(job.out))
    )


def add_recorded_selections(stage: Stage, folder: Path) -> Stage:
    """Return the stage with the additional selections of its existing record.

    Training it again for another selection then keeps the results of all earlier selections. The
    stage is returned unchanged if it has no record, or if it lists the tasks of its test.
    """
    if stage.tests or not (folder / RECORD).exists():
        return stage
    asked = {selection.tasks for selection in stage.selections}
    made = {*list_selections(read_record(folder / RECORD))} - asked
    own = [tasks for tasks in made if {*tasks} <= {*stage.tasks}]
    before = [replace(stage, selection=replace(stage.selection, tasks=tasks)) for tasks in own]
    return merge_selections(stage, before)


def _set_record_aside(folder: Path, problem: str) -> None:
    """Rename a damaged record, which may have taken hours to compute, instead of overwriting it."""
    kept = set_files_aside(folder)
    record_event(folder, "set aside", cause=problem, files=[file.name for file in kept])
    names = ", ".join(file.name for file in kept)
    _print_message(f"{problem}. The files are kept as {names}, and the stage is trained again.")


def _raise_repeated_error(job: Job, call: str) -> None:
    """Raise the error of the last attempt if it would occur again.

    A new call of the workflow tries again, because the input may have been fixed.
    """
    events = read_history(job.out)
    last = events[-1] if events else {}
    failed = last.get("event") == "failed" and last.get("call") == call
    kind = getattr(errors, str(last.get("cause")), None) if failed else None
    if kind is None or kind.__name__ in RETRIED_ERRORS:
        return
    if isinstance(kind, type) and issubclass(kind, TaskTransferError):
        raise kind(
            f"{last.get('error')} This error is from an earlier attempt with the same input, so "
            "the training was not run again."
        )


def _print_message(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
