"""Copying finished nodes from another machine or lab, identified by digest.

Equal digests mean equal computations: the digest covers data, model, tasks, hyperparameters and
seed, but not names and paths. Existing local files are never overwritten. A node is copied file by
file under its claim, with the record last. An interrupted copy is therefore an unfinished node,
which the next merge or the node's job completes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypedDict

from tasktransfer.core.nodes import Node, Stage
from tasktransfer.errors import ConfigError, RecordError
from tasktransfer.files import compute_sha256, remove_partial_files, replace_file
from tasktransfer.files.progress import show_progress
from tasktransfer.operate.merge_rows import compare_rows
from tasktransfer.operate.offered_records import (
    PARAMETERS,
    check_files,
    find_parameters_problem,
    read_offered_record,
    rename_model,
)
from tasktransfer.results.comparing import list_differences
from tasktransfer.results.damage import find_damage, set_files_aside
from tasktransfer.results.node_folders import (
    LAYOUT,
    NodeFolder,
    has_valid_record,
    is_needed,
    is_through_link,
    iterate_node_folders,
)
from tasktransfer.results.records import (
    describe_unrecorded_selections,
    list_written_parts,
    read_record,
    write_record,
)
from tasktransfer.results.schema import Record
from tasktransfer.results.state import (
    HISTORY,
    JOB_LOG,
    LOG,
    RECORD,
    RESUME,
    record_event,
    try_to_claim_folder,
)
from tasktransfer.results.study import Study

MergeOutcome = Literal["copied", "completed", "identical", "busy", "conflict", "rejected"]
OUTCOMES: dict[MergeOutcome, str] = {
    "copied": "",
    "completed": " (files or checkpoint added to an existing record)",
    "identical": " (your folder already contains them)",
    "busy": " (a job is computing them here; not copied)",
    "conflict": " (same digest but different numbers; your record is kept)",
    "rejected": " (damaged or inconsistent; not copied)",
}
"""Outcome of merging a node → its explanation."""


SHOWN_DIFFERENCES = 3


@dataclass(frozen=True, slots=True)
class MergeStep:
    """One node to merge.

    ``node_folder``: its source folder. ``out``: its destination. ``node``: the planned node, or
    None. ``takes_parameters``: returns whether to copy a stage's parameters; it is called when the
    stage is copied, after the stages that start from it.
    """

    node_folder: NodeFolder
    out: Path
    node: Node | None
    takes_parameters: Callable[[], bool]


class MergedNode(TypedDict):
    """A node of the other folder: its path, the outcome with reasons, and its author."""

    stage: str
    outcome: MergeOutcome
    reasons: list[str]
    made_by: str | None


class MergeResult(TypedDict):
    """The result of a merge.

    ``counts``: number of nodes by outcome. ``tables``: copied tables. ``lacking``: number of
    planned nodes missing in both folders. ``unfinished``: number of nodes without a record in the
    other folder. ``elsewhere``: number of nodes there that are not in the plan.
    """

    other: str
    results: str
    dry_run: bool
    counts: dict[MergeOutcome, int]
    tables: list[str]
    lacking: int
    unfinished: int
    elsewhere: int
    stages: list[MergedNode]


def merge_results(
    study: Study,
    other: Path,
    *,
    everything: bool = False,
    checkpoints: bool = True,
    dry_run: bool = False,
    tables: Iterable[str] = (),
) -> MergeResult:
    """Copy the finished nodes of the results folder ``other`` into the study's folder.

    Args:
        study: study whose plan selects the nodes; its inputs must be known.
        other: a results folder, which is only read.
        everything: copy all nodes, not only those in the plan.
        checkpoints: copy checkpoints that this study keeps or that its trainings start from.
        dry_run: report the outcome without copying.
        tables: files of tables computed from dialogues, relative to a results folder; those missing
            here are copied.

    Raises:
        ConfigError: ``other`` is not a results folder, or is the study's own.
    """
    _check_other_folder(study, other)
    steps, unfinished, elsewhere = _plan_steps(study, other, everything, checkpoints)
    _sort_steps(steps, study)
    nodes = _merge_steps(steps, other, dry_run=dry_run)
    there = {step.node_folder.digest for step in steps}
    lacking = (digest for digest in study.plan.by_digest if digest not in there)
    return {
        "other": str(other),
        "results": study.config.results,
        "dry_run": dry_run,
        "counts": {name: sum(node["outcome"] == name for node in nodes) for name in OUTCOMES},
        "tables": _merge_tables(study, other, tables, dry_run=dry_run),
        "lacking": sum(not has_valid_record(study, study.get_node(digest)) for digest in lacking),
        "unfinished": unfinished,
        "elsewhere": elsewhere,
        "stages": nodes,
    }


def _merge_steps(steps: Sequence[MergeStep], other: Path, *, dry_run: bool) -> list[MergedNode]:
    """Copy the nodes, with dependencies last."""
    nodes: list[MergedNode] = []
    for step in show_progress([*reversed(steps)], f"copying records of {other}"):
        outcome, reasons, by = _merge_node(step, dry_run=dry_run)
        path = step.node_folder.path
        nodes.append({"stage": path, "outcome": outcome, "reasons": reasons, "made_by": by})
    return nodes[::-1]


def _merge_tables(study: Study, other: Path, tables: Iterable[str], *, dry_run: bool) -> list[str]:
    """Copy the tables that are missing here (unless ``dry_run``), and return their names."""
    own = Path(study.config.results)
    taken = [
        name
        for name in tables
        if (other / name).is_file()
        and not is_through_link(other, name)
        and not (own / name).exists()
    ]
    for name in () if dry_run else taken:
        _copy_file(other / name, own / name)
    return taken


def _check_other_folder(study: Study, other: Path) -> None:
    own = Path(study.config.results)
    rooms = [room for room in LAYOUT if (other / room).is_dir()]
    if not rooms:
        raise ConfigError(
            f"{other}: The folder is not a results folder, because it contains none of "
            f"{', '.join(LAYOUT)}. Specify the folder under `results` in the other study's config."
        )
    if any((other / room).resolve() == (own / room).resolve() for room in rooms):
        raise ConfigError(
            f"{other}: The folder is the results folder of {study.config_file} itself. Specify "
            "another results folder."
        )


def _plan_steps(
    study: Study, other: Path, everything: bool, checkpoints: bool
) -> tuple[list[MergeStep], int, int]:
    """Return the nodes to merge, and counts of nodes without a record or outside the plan.

    Nodes of the plan are recognized by digest, since the other study may use other model names.
    """
    wanted = study.plan.by_digest
    steps, unfinished, elsewhere = [], 0, 0
    for node_folder in iterate_node_folders(other):
        node = wanted.get(node_folder.digest)
        if node is None and not everything:
            elsewhere += 1
        elif not (node_folder.folder / RECORD).is_file():
            unfinished += 1
        else:
            steps.append(_plan_step(study, node_folder, node, checkpoints))
    return steps, unfinished, elsewhere


def _sort_steps(steps: list[MergeStep], study: Study) -> None:
    """Sort the merge steps in place, with dependencies first."""
    order = {digest: number for number, digest in enumerate(study.plan.by_digest)}
    steps.sort(
        key=lambda step: (order.get(step.node_folder.digest, len(order)), step.node_folder.path)
    )


def _plan_step(
    study: Study, node_folder: NodeFolder, node: Node | None, checkpoints: bool
) -> MergeStep:
    if node is None:
        out = Path(study.config.results) / node_folder.path
        return MergeStep(node_folder, out, None, lambda: checkpoints)

    def takes_parameters() -> bool:
        """Return whether to copy parameters, because they are kept or another node needs them."""
        if not checkpoints or not isinstance(node, Stage):
            return False
        if not study.makes_checkpoint(node.kind):
            return False
        return study.keeps_checkpoints(node.kind) or is_needed(study, node)

    return MergeStep(node_folder, Path(study.get_node_folder(node)), node, takes_parameters)


# --- one node -----------------------------------------------------------------------------------


def _merge_node(step: MergeStep, *, dry_run: bool) -> tuple[MergeOutcome, list[str], str | None]:
    """Merge a node, and return the outcome, its reasons, and the author of its record."""
    try:
        theirs = read_offered_record(step.node_folder, step.node)
    except RecordError as error:
        return "rejected", [str(error)], None
    outcome, reasons = _merge_record(step, theirs, dry_run=dry_run)
    return outcome, reasons, theirs["provenance"].get("made_by")


def _merge_record(
    step: MergeStep, theirs: Record, *, dry_run: bool
) -> tuple[MergeOutcome, list[str]]:
    if isinstance(step.node, Stage):
        theirs = rename_model(theirs, step.node.model.name)
    ours = _read_own_record(step, theirs)
    if ours is None:
        return _copy_node(step, theirs, "copied", dry_run=dry_run)
    # Local files are always kept; only missing files are added.
    differing = list_differences(ours, theirs) or compare_rows(
        step.out, step.node_folder.folder, ours, theirs
    )
    if differing:
        more = len(differing) - SHOWN_DIFFERENCES
        return "conflict", [*differing[:SHOWN_DIFFERENCES], *[f"and {more} more"] * (more > 0)]
    if not _find_missing_files(step, theirs):
        lacks = (
            describe_unrecorded_selections(step.node, ours)
            if isinstance(step.node, Stage)
            else None
        )
        return "identical", [f"here {lacks}, so it is trained again"] if lacks else []
    return _copy_node(step, theirs, "completed", dry_run=dry_run)


def _read_own_record(step: MergeStep, theirs: Record) -> Record | None:
    """Read the local record of a node, or return None if it is missing or damaged."""
    try:
        ours = read_record(step.out / RECORD)
    except RecordError:
        return None
    return ours if ours["node"]["digest"] == theirs["node"]["digest"] else None


def _find_missing_files(step: MergeStep, theirs: Record) -> list[str]:
    """Return the offered files whose local copies are missing or damaged.

    Local files without a record were left by a killed job and do not count.
    """
    rows = [theirs["rows"]["file"]] if theirs["rows"] else []
    left = list_written_parts(theirs["node"], theirs["sizes"])
    beside = [name for name in left if (step.node_folder.folder / name).exists()]
    lacks = []
    if _read_own_record(step, theirs) is None:
        lacks += [RECORD, *rows, *beside]
    elif find_damage(step.out, theirs["node"]["digest"]) is not None:
        lacks += [*rows, *_list_absent_files(step.out, beside)]
    else:
        lacks += _list_absent_files(step.out, beside)
    offers = [name for name in PARAMETERS if (step.node_folder.folder / name).is_dir()]
    absent = _list_absent_files(step.out, offers) if step.node_folder.is_stage else []
    return lacks + (absent if absent and step.takes_parameters() else [])


def _list_absent_files(folder: Path, names: Sequence[str]) -> list[str]:
    return [name for name in names if not (folder / name).exists()]


def _copy_node(
    step: MergeStep, theirs: Record, outcome: MergeOutcome, *, dry_run: bool
) -> tuple[MergeOutcome, list[str]]:
    remarks, digest = [], theirs["node"]["digest"]
    try:
        check_files(step.node_folder, theirs)
    except RecordError as error:
        return "rejected", [str(error)]
    wanted = [name for name in _find_missing_files(step, theirs) if name in PARAMETERS]
    problems = [find_parameters_problem(step.node_folder.folder / name, digest) for name in wanted]
    if any(problems):
        remarks = [f"copied without checkpoint: {problem}" for problem in problems if problem]
        step = replace(step, takes_parameters=lambda: False)
        if outcome == "completed" and not _find_missing_files(step, theirs):
            return "rejected", remarks
    if dry_run:
        return outcome, remarks
    with try_to_claim_folder(step.out) as held:
        if not held:
            return "busy", ["it is being computed here"]
        try:
            remarks += _copy_missing_files(step, theirs)
        except RecordError as error:
            return "rejected", [str(error)]
        record_event(step.out, "merged", source=str(step.node_folder.results), digest=digest)
    return outcome, remarks


def _copy_missing_files(step: MergeStep, theirs: Record) -> list[str]:
    """Copy the missing files (record last), and return remarks on damaged local files.

    Missing files are determined again, since the node is locked only now.
    """
    lacks, folder = _find_missing_files(step, theirs), step.node_folder.folder
    remove_partial_files(step.out)
    # Without a record nothing is damaged, because the node was never finished.
    damaged = lacks if (step.out / RECORD).exists() else []
    kept = set_files_aside(step.out, [name for name in damaged if name not in PARAMETERS])
    remarks = [f"damaged here; the damaged file is kept as {file}" for file in kept]
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
    # Delete the resume state of a training of this stage that was interrupted here.
    shutil.rmtree(step.out / RESUME, ignore_errors=True)
    return remarks


def _copy_file(source: Path, out: Path, sha256: str | None = None) -> None:
    # The current time as mtime, since tables are rebuilt when records are newer.
    with replace_file(out) as part:
        shutil.copyfile(source, part)
        if sha256 not in (None, compute_sha256(part)):
            raise RecordError(
                f"{source}: The file was changed or damaged while it was copied. Merge again."
            )


def _copy_folder(source: Path, out: Path) -> None:
    """Copy a folder atomically, and replace leftovers of a killed job."""
    building = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        shutil.copytree(source, building, symlinks=True, copy_function=shutil.copyfile)
        shutil.rmtree(out, ignore_errors=True)
        building.rename(out)
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(building)
