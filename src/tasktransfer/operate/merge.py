"""Taking the finished stages of another machine or lab, by digest.

Equal digests are equal trainings, whoever did them: data, model, tasks, hyperparameters and seed
are in the digest, names and paths are not. Nothing that is here is ever overwritten. A stage is
taken file by file under its claim, its record last, so that whatever ends the process half-way
leaves an unfinished stage that the next merge, or a training, completes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tasktransfer.core.nodes import Stage
from tasktransfer.errors import ConfigError, RecordError
from tasktransfer.files import replacing, sweep
from tasktransfer.operate.folders import held_if_free
from tasktransfer.operate.offered import (
    STAGES,
    Place,
    check_predictions,
    checked_record,
    checkpoint_problem,
    differences,
    places,
    renamed,
)
from tasktransfer.results.damage import damage, set_aside
from tasktransfer.results.finished import is_start, is_whole
from tasktransfer.results.predictions import read_predictions
from tasktransfer.results.records import Record, read_record, write_record
from tasktransfer.results.rounds import CHECKPOINT
from tasktransfer.results.state import HISTORY, LOG, PREDICTIONS, RECORD, remember
from tasktransfer.results.study import Study
from tasktransfer.tables.numbers import counted

Outcome = Literal["taken", "completed", "there already", "busy", "conflict", "refused"]
OUTCOMES: tuple[Outcome, ...] = (
    "taken",
    "completed",
    "there already",
    "busy",
    "conflict",
    "refused",
)

RESUME = ".resume"
"""Where a training keeps its state (``training.resume``, which imports torch)."""

SAY_SECONDS = 5.0
SHOWN_DIFFERENCES = 3


@dataclass(frozen=True, slots=True)
class Step:
    """One stage that is offered: where from, where to, and the stage that this study expects.

    ``takes_checkpoint`` is asked when the stage is taken, after those that start from it.
    """

    place: Place
    out: Path
    model: str
    stage: Stage | None
    takes_checkpoint: Callable[[], bool]


def merge_results(
    study: Study,
    other: Path,
    *,
    everything: bool = False,
    checkpoints: bool = True,
    dry_run: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Take the finished stages of ``other`` into the study's results folder.

    Args:
        study: whose plan says what is wanted; its inputs must be known.
        other: a results folder. It is only read.
        everything: all stages there, for whatever study, and not those of the plan alone.
        checkpoints: also those that this study keeps, or has trainings to start from.
        dry_run: tell what would happen.
        say: told now and then how far it is.

    Returns:
        Counts by outcome; ``stages``: outcome and reason of each stage offered; ``unfinished``:
        offered stages without a record; ``elsewhere``: offered stages that this study does not
        want; ``lacking``: trainings of the study that are neither here nor offered.

    Raises:
        ConfigError: ``other`` is no results folder, or is the study's own.
    """
    _check_other(study, other)
    steps, unfinished, elsewhere = _steps(study, other, everything, checkpoints)
    told: list[dict[str, Any]] = []
    reminder = time.monotonic() + SAY_SECONDS
    for number, step in enumerate(reversed(steps), start=1):
        outcome, reasons = _merge_one(step, dry_run=dry_run, source=other)
        told.insert(0, {"stage": step.place.path, "outcome": outcome, "reasons": reasons})
        if time.monotonic() > reminder:
            reminder = time.monotonic() + SAY_SECONDS
            say(f"{number:,} of {len(steps):,} stages looked at")
    offered = {step.stage.digest for step in steps if step.stage}
    lacking = [
        stage
        for stage in study.plan.stages
        if stage.digest not in offered and not is_whole(study, stage)
    ]
    return {
        "other": str(other),
        "results": study.config.results,
        "dry_run": dry_run,
        "counts": {name: sum(t["outcome"] == name for t in told) for name in OUTCOMES},
        "unfinished": unfinished,
        "elsewhere": elsewhere,
        "lacking": len(lacking),
        "stages": told,
    }


def _check_other(study: Study, other: Path) -> None:
    if not (other / STAGES).is_dir():
        raise ConfigError(
            f"{other}: no results folder: it has no folder {STAGES}/; give the folder that "
            "`results` of the other study names"
        )
    if (other / STAGES).resolve() == (Path(study.config.results) / STAGES).resolve():
        raise ConfigError(f"{other}: is the results folder of {study.config_file} itself")


def _steps(
    study: Study, other: Path, everything: bool, checkpoints: bool
) -> tuple[list[Step], int, int]:
    """What is offered and wanted, parents first; how many have no record; how many are not wanted.

    Stages of the plan are found by digest, since the other study may call its models otherwise.
    """
    wanted = {stage.digest[:12]: stage for stage in study.plan.stages}
    order = {stage.digest[:12]: number for number, stage in enumerate(study.plan.stages)}
    steps, unfinished, elsewhere = [], 0, 0
    for place in places(other):
        stage = wanted.get(place.digest)
        if stage is None and not everything:
            elsewhere += 1
        elif not (place.folder / RECORD).is_file():
            unfinished += 1
        else:
            steps.append(_step(study, place, stage, checkpoints))
    steps.sort(key=lambda step: (order.get(step.place.digest, len(order)), step.place.path))
    return steps, unfinished, elsewhere


def _step(study: Study, place: Place, stage: Stage | None, checkpoints: bool) -> Step:
    if stage is None:
        out = Path(study.config.results) / place.path
        return Step(place, out, place.model, None, lambda: checkpoints)

    def takes_checkpoint() -> bool:
        """A checkpoint that does not stay is taken only if something is still to start from it."""
        if not checkpoints or not study.makes_checkpoint(stage.kind):
            return False
        return study.keeps(stage.kind) or is_start(study, stage)

    return Step(place, Path(study.folder(stage)), stage.model.name, stage, takes_checkpoint)


# --- one stage ----------------------------------------------------------------------------------


def _merge_one(step: Step, *, dry_run: bool, source: Path) -> tuple[Outcome, list[str]]:
    try:
        theirs = renamed(checked_record(step.place, step.stage), step.model)
    except RecordError as error:
        return "refused", [str(error)]
    ours = _ours(step, theirs)
    if ours is not None:
        return _compare(step, ours, theirs, dry_run=dry_run, source=source)
    return _take(step, theirs, "taken", dry_run=dry_run, source=source)


def _ours(step: Step, theirs: Record) -> Record | None:
    """The record of this stage that is here; None if there is none, or a damaged one."""
    try:
        ours = read_record(step.out / RECORD)
    except RecordError:
        return None
    return ours if ours["stage"]["digest"] == theirs["stage"]["digest"] else None


def _compare(
    step: Step, ours: Record, theirs: Record, *, dry_run: bool, source: Path
) -> tuple[Outcome, list[str]]:
    """What is here stays, whatever is there; only what is missing here is added."""
    found = differences(ours, theirs) or _other_predictions(step, ours, theirs)
    if found:
        more = [f"and {len(found) - SHOWN_DIFFERENCES} more"] * (len(found) > SHOWN_DIFFERENCES)
        return "conflict", [*found[:SHOWN_DIFFERENCES], *more]
    if not _missing(step, theirs):
        return "there already", []
    return _take(step, theirs, "completed", dry_run=dry_run, source=source)


def _other_predictions(step: Step, ours: Record, theirs: Record) -> list[str]:
    """Equal predictions may be packed into different files, by other versions of the library."""
    mine, other = ours["predictions"], theirs["predictions"]
    if mine is None or other is None or mine["sha256"] == other["sha256"]:
        return []
    try:
        here = read_predictions(step.out / PREDICTIONS, mine)
        there = read_predictions(step.place.folder / PREDICTIONS, other)
    except RecordError as error:
        return [f"the predictions' SHA-256 differ, and cannot be compared: {error}"]
    return [] if here.equals(there) else ["the predictions differ"]


def _missing(step: Step, theirs: Record) -> list[str]:
    """What a stage lacks here that is offered. Predictions without a record are those of a
    training that was killed, and no result."""
    recorded = _ours(step, theirs) is not None
    lacks = [] if recorded else [RECORD]
    if theirs["predictions"] is not None and not (recorded and _is_whole(step.out, theirs)):
        lacks.append(PREDICTIONS)
    offered = (step.place.folder / CHECKPOINT).is_dir()
    if offered and not (step.out / CHECKPOINT).exists() and step.takes_checkpoint():
        lacks.append(CHECKPOINT)
    return lacks


def _is_whole(folder: Path, theirs: Record) -> bool:
    return damage(folder, theirs["stage"]["digest"]) is None


def _take(
    step: Step, theirs: Record, outcome: Outcome, *, dry_run: bool, source: Path
) -> tuple[Outcome, list[str]]:
    remarks = []
    try:
        check_predictions(step.place.folder, theirs)
    except RecordError as error:
        return "refused", [str(error)]
    problem = checkpoint_problem(step.place.folder)
    if problem and CHECKPOINT in _missing(step, theirs):
        remarks.append(f"without its checkpoint: {problem}")
        step = replace(step, takes_checkpoint=lambda: False)
        if outcome == "completed" and not _missing(step, theirs):
            return "refused", remarks
    if dry_run:
        return outcome, remarks
    with held_if_free(step.out) as held:
        if not held:
            return "busy", ["it is being trained here now"]
        try:
            remarks += _copy(step, theirs)
        except RecordError as error:
            return "refused", [str(error)]
        remember(step.out, "merged", source=str(source), digest=theirs["stage"]["digest"])
    return outcome, remarks


def _copy(step: Step, theirs: Record) -> list[str]:
    """What is missing, the record last; gives a remark on what was damaged here. It is looked at
    again: the stage is held only now."""
    lacks, folder = _missing(step, theirs), step.place.folder
    sweep(step.out)
    # Of a stage without record nothing is damaged: it was never finished.
    damaged = lacks if (step.out / RECORD).exists() else []
    kept = set_aside(step.out, [name for name in damaged if name != CHECKPOINT])
    remarks = [f"was damaged here, kept as {file}" for file in kept]
    if CHECKPOINT in lacks:
        _copy_folder(folder / CHECKPOINT, step.out / CHECKPOINT)
    if PREDICTIONS in lacks and theirs["predictions"] is not None:
        file = PREDICTIONS
        _copy_file(folder / file, step.out / file, sha256=theirs["predictions"]["sha256"])
    if RECORD not in lacks:
        return remarks
    for name in (LOG, HISTORY):
        source, out = folder / name, step.out / name
        if source.is_file() and not source.is_symlink() and not out.exists():
            _copy_file(source, out)
    write_record(step.out / RECORD, theirs)
    # The state of a training of this stage that was interrupted here.
    shutil.rmtree(step.out / RESUME, ignore_errors=True)
    return remarks


def _copy_file(source: Path, out: Path, sha256: str | None = None) -> None:
    # With the time of now: tables are made again when records are newer than they.
    with replacing(out) as part:
        shutil.copyfile(source, part)
        with part.open("rb") as stream:
            copied = hashlib.file_digest(stream, "sha256").hexdigest()
        if sha256 not in (None, copied):
            raise RecordError(f"{source}: changed, or damaged on the way, while it was copied")


def _copy_folder(source: Path, out: Path) -> None:
    """All or nothing, as the trainer writes it."""
    building = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        shutil.copytree(source, building, symlinks=True, copy_function=shutil.copyfile)
        building.rename(out)
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(building)


# --- what is said -------------------------------------------------------------------------------


def failure(seen: dict[str, Any]) -> RecordError | None:
    """What makes the command fail: conflicts, and what had to be refused."""
    conflicts, refused = seen["counts"]["conflict"], seen["counts"]["refused"]
    if not conflicts and not refused:
        return None
    return RecordError(
        f"{seen['other']}: {counted(conflicts, 'stage')} with other numbers than here, "
        f"{refused:,} refused; nothing here was changed by them"
    )


def as_text(seen: dict[str, Any]) -> str:
    """What a merge did, for people."""
    return "\n".join(_lines(seen)) + "\n"


_NOTES: dict[Outcome, str] = {
    "taken": "",
    "completed": " (predictions or checkpoint added to a record that was here)",
    "there already": " (equal)",
    "busy": " (being trained here now; left alone)",
    "conflict": " (same digest, other numbers; what is here stays)",
    "refused": " (damaged, or not what it says; not taken)",
}


def _lines(seen: dict[str, Any]) -> Iterator[str]:
    mark = " (dry run: nothing is copied)" * seen["dry_run"]
    yield f"{seen['other']} -> {seen['results']}{mark}"
    for name in OUTCOMES:
        count = seen["counts"][name]
        if count or name == "taken":
            yield f"  {count:>7,}  {name}{_NOTES[name]}"
    if seen["unfinished"]:
        yield f"  {seen['unfinished']:>7,}  not finished there"
    if seen["elsewhere"]:
        yield f"  {seen['elsewhere']:>7,}  not of this study (--all takes them)"
    if seen["lacking"]:
        yield f"  {seen['lacking']:>7,}  trainings of this study are neither here nor there"
    for item in seen["stages"]:
        if item["reasons"]:
            yield f"{item['outcome']}: {item['stage']}"
            yield from (f"    {reason}" for reason in item["reasons"])
