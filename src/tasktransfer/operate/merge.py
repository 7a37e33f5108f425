"""Taking the finished nodes of another machine or lab, by digest.

Equal digests are equal work, whoever did it: data, model, tasks, hyperparameters and seed are in
the digest, names and paths are not. Nothing that is here is ever overwritten. A node is taken file
by file under its claim, its record last, so that whatever ends the process half-way leaves an
unfinished node that the next merge, or its job, completes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from tasktransfer.core.nodes import Node, Stage
from tasktransfer.errors import ConfigError, RecordError
from tasktransfer.files import replacing, sha256_of, sweep
from tasktransfer.files.progress import with_progress
from tasktransfer.operate.coded_answers import shareable
from tasktransfer.operate.offered import (
    PARAMETERS,
    check_files,
    offered,
    parameters_problem,
    renamed,
)
from tasktransfer.operate.rekey import Rekeyed, rekeyed
from tasktransfer.results.comparing import differences, shared_tasks
from tasktransfer.results.damage import damage, set_aside
from tasktransfer.results.finished import is_start, is_whole
from tasktransfer.results.places import LAYOUT, NodeFolder, node_folders, through_link
from tasktransfer.results.records import read_record, what_is_left, without_selection, write_record
from tasktransfer.results.rows import read_rows
from tasktransfer.results.schema import Record
from tasktransfer.results.state import HISTORY, JOB_LOG, LOG, RECORD, RESUME, held_if_free, remember
from tasktransfer.results.study import Study

MergeOutcome = Literal["taken", "completed", "there already", "busy", "conflict", "refused"]
OUTCOMES: dict[MergeOutcome, str] = {
    "taken": "",
    "completed": " (files or checkpoint added to a record that was here)",
    "there already": " (equal)",
    "busy": " (being made here now; left alone)",
    "conflict": " (same digest, other numbers; what is here stays)",
    "refused": " (damaged, or not what it says; not taken)",
}
"""What may become of a node, and how that is explained."""


COMPARED = [
    *("task", "index", "instance_id", "prediction", "gold", "score"),
    *("predicted_value", "gold_value"),
]
"""Columns of rows that have to be equal."""

SHOWN_DIFFERENCES = 3


@dataclass(frozen=True, slots=True)
class MergeStep:
    """One node that is offered: where from, where to, and the node that this study expects.

    ``takes_parameters`` is asked when a stage is taken, after those that start from it.
    """

    node_folder: NodeFolder
    out: Path
    node: Node | None
    takes_parameters: Callable[[], bool]


def merge_results(
    study: Study,
    other: Path,
    *,
    everything: bool = False,
    checkpoints: bool = True,
    dry_run: bool = False,
    tables: Iterable[str] = (),
) -> dict[str, Any]:
    """Take the finished nodes of ``other`` into the study's results folder.

    Args:
        study: whose plan says what is wanted; its inputs must be known.
        other: a results folder. It is only read.
        everything: all nodes there, for whatever study, and not those of the plan alone.
        checkpoints: also those that this study keeps, or has trainings to start from.
        dry_run: tell what would happen.
        tables: files of tables that are made of dialogues, relative to a results folder; those that
            are there and not here are taken.

    Returns:
        Counts by outcome; ``stages``: outcome, reasons and maker of each node offered;
        ``unfinished``: offered nodes without a record; ``elsewhere``: offered nodes that this study
        does not want; ``rekeyed``: how many records of older releases were taken as how many nodes
        of today, and which were refused; ``tables`` taken; ``lacking``: nodes of the study that are
        neither here nor offered.

    Raises:
        ConfigError: ``other`` is no results folder, or is the study's own.
    """
    _check_other(study, other)
    with rekeyed(study, other) as older:
        steps, unfinished, elsewhere = _steps(study, other, everything, checkpoints, older)
        steps += _steps(study, older.folder, False, checkpoints)[0]
        return {
            **_merged(study, other, steps, dry_run=dry_run, tables=tables),
            "dry_run": dry_run,
            "unfinished": unfinished,
            "elsewhere": elsewhere,
            "rekeyed": {"nodes": older.nodes, "records": older.records, "refused": older.refused},
        }


def _merged(
    study: Study,
    other: Path,
    steps: list[MergeStep],
    *,
    dry_run: bool,
    tables: Iterable[str],
) -> dict[str, Any]:
    """Take what is offered and wanted, what others use last."""
    _in_order(steps, study)
    outcomes: list[dict[str, Any]] = []
    for step in with_progress([*reversed(steps)], f"taking records of {other}"):
        outcome, reasons, by = _merge_one(step, dry_run=dry_run)
        outcomes.insert(
            0,
            {"stage": step.node_folder.path, "outcome": outcome, "reasons": reasons, "made_by": by},
        )
    own, there = Path(study.config.results), {step.node_folder.digest for step in steps}
    taken = [
        name
        for name in tables
        if (other / name).is_file() and not through_link(other, name) and not (own / name).exists()
    ]
    for name in () if dry_run else taken:
        _copy_file(other / name, own / name)
    lacking = (digest for digest in study.plan.by_digest if digest not in there)
    return {
        "other": str(other),
        "results": study.config.results,
        "counts": {name: sum(t["outcome"] == name for t in outcomes) for name in OUTCOMES},
        "tables": taken,
        "lacking": sum(not is_whole(study, study.node(digest)) for digest in lacking),
        "stages": outcomes,
    }


def _check_other(study: Study, other: Path) -> None:
    own = Path(study.config.results)
    rooms = [room for room in LAYOUT if (other / room).is_dir()]
    if not rooms:
        raise ConfigError(
            f"{other}: no results folder: it has none of {', '.join(LAYOUT)}; give the folder that "
            "`results` of the other study names"
        )
    if any((other / room).resolve() == (own / room).resolve() for room in rooms):
        raise ConfigError(f"{other}: is the results folder of {study.config_file} itself")


def _steps(
    study: Study,
    other: Path,
    everything: bool,
    checkpoints: bool,
    older: Rekeyed | None = None,
) -> tuple[list[MergeStep], int, int]:
    """What is offered and wanted; how many have no record; how many are not wanted. Records of
    ``older`` releases are offered as what they are today.

    Nodes of the plan are recognised by digest: the other study may call its models otherwise.
    """
    wanted = study.plan.by_digest
    steps, unfinished, elsewhere = [], 0, 0
    for node_folder in node_folders(other):
        node = wanted.get(node_folder.digest)
        if older is not None and node_folder.digest in older.taken:
            continue
        if node is None and not everything:
            elsewhere += 1
        elif not (node_folder.folder / RECORD).is_file():
            unfinished += 1
        else:
            steps.append(_step(study, node_folder, node, checkpoints))
    return steps, unfinished, elsewhere


def _in_order(steps: list[MergeStep], study: Study) -> None:
    """Used nodes first."""
    order = {digest: number for number, digest in enumerate(study.plan.by_digest)}
    steps.sort(
        key=lambda step: (order.get(step.node_folder.digest, len(order)), step.node_folder.path)
    )


def _step(study: Study, node_folder: NodeFolder, node: Node | None, checkpoints: bool) -> MergeStep:
    if node is None:
        out = Path(study.config.results) / node_folder.path
        return MergeStep(node_folder, out, None, lambda: checkpoints)

    def takes_parameters() -> bool:
        """Those that do not stay are taken only if something is still to start from them."""
        if not checkpoints or not isinstance(node, Stage):
            return False
        if not study.makes_checkpoint(node.kind):
            return False
        return study.keeps(node.kind) or is_start(study, node)

    return MergeStep(node_folder, Path(study.folder(node)), node, takes_parameters)


# --- one node -----------------------------------------------------------------------------------


def _merge_one(step: MergeStep, *, dry_run: bool) -> tuple[MergeOutcome, list[str], str | None]:
    """What becomes of a node, why, and who made it, where its record says so."""
    try:
        theirs = offered(step.node_folder, step.node)
    except RecordError as error:
        return "refused", [str(error)], None
    outcome, reasons = _merge_record(step, theirs, dry_run=dry_run)
    return outcome, reasons, theirs["provenance"].get("made_by")


def _merge_record(
    step: MergeStep, theirs: Record, *, dry_run: bool
) -> tuple[MergeOutcome, list[str]]:
    if isinstance(step.node, Stage):
        theirs = renamed(theirs, step.node.model.name)
    ours = _ours(step, theirs)
    if ours is None:
        return _take(step, theirs, "taken", dry_run=dry_run)
    # What is here stays, whatever is there; only what is missing here is added.
    differing = differences(ours, theirs) or _other_rows(step, ours, theirs)
    if differing:
        more = len(differing) - SHOWN_DIFFERENCES
        return "conflict", [*differing[:SHOWN_DIFFERENCES], *[f"and {more} more"] * (more > 0)]
    if not _missing(step, theirs):
        lacks = without_selection(step.node, ours) if isinstance(step.node, Stage) else None
        return "there already", [f"here {lacks}: trained once more"] if lacks else []
    return _take(step, theirs, "completed", dry_run=dry_run)


def _ours(step: MergeStep, theirs: Record) -> Record | None:
    """The record of this node that is here; None if there is none, or a damaged one."""
    try:
        ours = read_record(step.out / RECORD)
    except RecordError:
        return None
    return ours if ours["node"]["digest"] == theirs["node"]["digest"] else None


def _other_rows(step: MergeStep, ours: Record, theirs: Record) -> list[str]:
    """Equal rows may be packed into different files, by other versions of the library."""
    mine, other = ours["rows"], theirs["rows"]
    if mine is None or other is None or mine["sha256"] == other["sha256"]:
        return []
    try:
        # Older files do not have the dialogues; instances and answers are what is compared.
        shared = shared_tasks(ours, theirs)
        here, there = (
            _compared(read_rows(folder / rows["file"], rows), shared)
            for folder, rows in ((step.out, mine), (step.node_folder.folder, other))
        )
    except RecordError as error:
        return [f"{mine['file']}: the SHA-256 differ, and cannot be compared: {error}"]
    if here.equals(there):
        return []
    # A pack has codes where answers are words of a dialogue.
    in_codes = [_in_codes(step.out, ours, rows) for rows in (here, there)]
    alike = in_codes[0].equals(in_codes[1])
    return [] if alike else [f"{mine['file']}: the rows differ"]


def _in_codes(folder: Path, record: Record, rows: pa.Table) -> pa.Table:
    """The rows as a pack has them; as they are where they cannot be passed on."""
    try:
        return shareable(folder, record, rows)
    except RecordError:
        return rows


def _compared(rows: pa.Table, tasks: set[str] | None) -> pa.Table:
    """What of rows has to be equal; of some tasks alone where others were not asked for both here
    and there."""
    compared = rows.select(COMPARED).replace_schema_metadata()
    if tasks is None:
        return compared
    of_tasks = compared.filter(pc.is_in(compared["task"], pa.array(sorted(tasks), pa.string())))
    return of_tasks.drop_columns(["index"])


def _missing(step: MergeStep, theirs: Record) -> list[str]:
    """What a node lacks here that is offered. Files without a record are those of a job that was
    killed, and no result."""
    rows = [theirs["rows"]["file"]] if theirs["rows"] else []
    left = what_is_left(theirs["node"], theirs["sizes"])
    beside = [name for name in left if (step.node_folder.folder / name).exists()]
    lacks = []
    if _ours(step, theirs) is None:
        lacks += [RECORD, *rows, *beside]
    elif damage(step.out, theirs["node"]["digest"]) is not None:
        lacks += [*rows, *_absent(step.out, beside)]
    else:
        lacks += _absent(step.out, beside)
    offers = [name for name in PARAMETERS if (step.node_folder.folder / name).is_dir()]
    absent = _absent(step.out, offers) if step.node_folder.is_stage else []
    return lacks + (absent if absent and step.takes_parameters() else [])


def _absent(folder: Path, names: Sequence[str]) -> list[str]:
    return [name for name in names if not (folder / name).exists()]


def _take(
    step: MergeStep, theirs: Record, outcome: MergeOutcome, *, dry_run: bool
) -> tuple[MergeOutcome, list[str]]:
    remarks, digest = [], theirs["node"]["digest"]
    try:
        check_files(step.node_folder, theirs)
    except RecordError as error:
        return "refused", [str(error)]
    wanted = [name for name in _missing(step, theirs) if name in PARAMETERS]
    problems = [parameters_problem(step.node_folder.folder / name, digest) for name in wanted]
    if any(problems):
        remarks = [f"without its checkpoint: {problem}" for problem in problems if problem]
        step = replace(step, takes_parameters=lambda: False)
        if outcome == "completed" and not _missing(step, theirs):
            return "refused", remarks
    if dry_run:
        return outcome, remarks
    with held_if_free(step.out) as held:
        if not held:
            return "busy", ["it is being made here now"]
        try:
            remarks += _copy(step, theirs)
        except RecordError as error:
            return "refused", [str(error)]
        remember(step.out, "merged", source=str(step.node_folder.results), digest=digest)
    return outcome, remarks


def _copy(step: MergeStep, theirs: Record) -> list[str]:
    """What is missing, the record last; gives a remark on what was damaged here. It is looked at
    again: the node is held only now."""
    lacks, folder = _missing(step, theirs), step.node_folder.folder
    sweep(step.out)
    # Of a node without record nothing is damaged: it was never finished.
    damaged = lacks if (step.out / RECORD).exists() else []
    kept = set_aside(step.out, [name for name in damaged if name not in PARAMETERS])
    remarks = [f"was damaged here, kept as {file}" for file in kept]
    for name in lacks:
        if (folder / name).is_dir():
            _copy_folder(folder / name, step.out / name)
        elif theirs["rows"] is not None and name == theirs["rows"]["file"]:
            _copy_file(folder / name, step.out / name, sha256=theirs["rows"]["sha256"])
        elif name != RECORD:
            _copy_file(folder / name, step.out / name)
    if RECORD not in lacks:
        return remarks
    for name in (LOG, JOB_LOG, HISTORY):
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
        if sha256 not in (None, sha256_of(part)):
            raise RecordError(f"{source}: changed, or damaged on the way, while it was copied")


def _copy_folder(source: Path, out: Path) -> None:
    """All or nothing, as its job writes it; in place of what a job that was killed left."""
    building = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        shutil.copytree(source, building, symlinks=True, copy_function=shutil.copyfile)
        shutil.rmtree(out, ignore_errors=True)
        building.rename(out)
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(building)
