"""Folders of nodes: their layout in a results folder, and which nodes are finished.

A node is finished if its record is valid (see ``damage``) and everything exists that unfinished
nodes read from it: the parameters of a stage's rounds, a fit, derived data. Plan, status, pilot,
merge, gc, explain and the Snakefile use this module.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.core.identity import compute_digest
from tasktransfer.core.nodes import SHORT, Evaluation, Fit, Node, Stage
from tasktransfer.core.runs import list_starts
from tasktransfer.errors import RecordError
from tasktransfer.files.progress import show_progress
from tasktransfer.results.damage import ValidFolderCache, find_damage, get_valid_folder_cache
from tasktransfer.results.records import describe_missing_selections, list_parts, read_record
from tasktransfer.results.rounds import LAST, ROUNDS, get_round_folder, read_last_round
from tasktransfer.results.schema import Record
from tasktransfer.results.state import DAMAGED, DONE, RECORD, read_unfinished_state
from tasktransfer.results.study import Study


@dataclass(frozen=True, slots=True)
class NodesOnDisk:
    """State of a study's nodes on disk.

    ``names``: digest → file names in the node's folder, without nodes that have no folder.
    ``finished``: digests of the finished nodes. ``damaged``: digest → problem with an existing
    record. ``again``: digests of nodes that have a valid record, but must be computed again because
    parameters or other files are missing.
    """

    names: Mapping[str, frozenset[str]]
    finished: frozenset[str]
    damaged: Mapping[str, str]
    again: frozenset[str]

    def list_unfinished_trainings(self, study: Study) -> tuple[Stage, ...]:
        """Return the trainings of a study that are not finished."""
        return tuple(s for s in study.plan.stages if s.digest not in self.finished)


def inspect_nodes(study: Study) -> NodesOnDisk:
    """Return the state of each node of a study, after checking uncached records.

    Raises:
        OSError: a folder cannot be listed.
        RecordError: a record or its predictions cannot be read.
    """
    nodes = show_progress(study.plan.nodes, "listing folders")
    listed = ((node.digest, list_file_names(study.get_node_folder(node))) for node in nodes)
    names = {digest: content for digest, content in listed if content is not None}
    recorded = [node for node in study.plan.nodes if RECORD in names.get(node.digest, ())]
    checked = show_progress(recorded, "checking records")
    damaged = {n.digest: problem for n in checked if (problem := find_node_damage(study, n))}
    finished = frozenset(node.digest for node in recorded if is_finished(study, node))
    save_check_cache(study)
    again = {node.digest for node in recorded} - finished - damaged.keys()
    return NodesOnDisk(names, finished, damaged, frozenset(again))


def is_finished(study: Study, node: Node) -> bool:
    """Return whether a node has a valid record and all files that unfinished nodes need from it.

    Raises as ``inspect_nodes``.
    """
    if not has_valid_record(study, node):
        return False
    if not isinstance(node, Stage):
        return describe_missing_files(study, node) is None
    if describe_unmade_selections(study, node):
        return False
    if not node.keeps_rounds and not node.also_selected:  # nothing starts from another round
        return os.path.lexists(study.get_checkpoint_folder(node)) or not is_needed(study, node)
    return not _list_missing_folders(study, node)


def describe_unmade_selections(study: Study, stage: Stage) -> str | None:
    """Describe the selections that a valid stage's training did not make.

    Return None if it made all. Raises as ``inspect_nodes``.
    """
    made = _open_check_cache(study).list_selections(stage, study.get_node_folder(stage))
    lacks = describe_missing_selections(stage, made)
    return f"{study.get_record_path(stage)}: {lacks}" if lacks else None


def describe_missing_rounds(study: Study, stage: Stage) -> str | None:
    """Describe the missing rounds of a valid stage from which unfinished nodes start.

    Return None if no such round is missing. Raises as ``inspect_nodes``.
    """
    gone = sorted(
        Path(path).name for path in _list_missing_folders(study, stage) if f"/{ROUNDS}/" in path
    )
    if not gone:
        return None
    return (
        f"{study.get_node_folder(stage)}/{ROUNDS}: Needed rounds were not kept: {', '.join(gone)}"
    )


def describe_missing_files(study: Study, node: Node) -> str | None:
    """Describe the missing files of a valid fit or derived data that unfinished nodes need.

    These are classifiers or instances. Return None if nothing is missing. Raises as
    ``inspect_nodes``.
    """
    if isinstance(node, Evaluation):  # only collect reads evaluations
        return None
    folder = Path(study.get_node_folder(node))
    gone = [
        part for part in list_parts(read_record(folder / RECORD)) if not (folder / part).exists()
    ]
    if not gone or not is_needed(study, node):
        return None
    return f"{folder}: Files that other nodes read are missing: {', '.join(gone)}"


def _list_missing_folders(study: Study, stage: Stage) -> list[str]:
    """Return the missing parameter folders of a valid stage from which unfinished nodes start."""
    folder = study.get_node_folder(stage)
    starts = [
        start
        for user in study.list_dependents(stage)
        for start in list_starts(user)
        if start.stage is not None
        and start.stage.digest == stage.digest
        and not is_finished(study, user)
    ]
    places = {
        get_round_folder(
            folder,
            read_last_round(Path(folder)) if start.at == LAST else start.at,
            start.selected_on,
        )
        for start in starts
    }
    return sorted(path for path in places if not os.path.lexists(path))


def has_valid_record(study: Study, node: Node) -> bool:
    """Return whether a node has a valid record, even if its other files are missing.

    Raises as ``inspect_nodes``.
    """
    return os.path.lexists(study.get_record_path(node)) and find_node_damage(study, node) is None


def is_needed(study: Study, node: Node) -> bool:
    """Return whether any unfinished node depends on a node. Raises as ``inspect_nodes``."""
    return not all(is_finished(study, user) for user in study.list_dependents(node))


def read_node_state(study: Study, node: Node) -> tuple[str, str | None]:
    """Return the state and the error of a node.

    Raises as ``inspect_nodes``.
    """
    return _read_state(Path(study.get_node_folder(node)), lambda: find_node_damage(study, node))


def inspect_node(study: Study, node: Node) -> tuple[str, str | None, Record | None]:
    """Return the state, error and record of a node.

    The record is None unless the node is done. State and error are those of ``read_node_state``. An
    unreadable record counts as damaged.
    """
    file = Path(study.get_record_path(node))
    if not os.path.lexists(file):
        seen = read_unfinished_state(file.parent)
        return seen.state, seen.error, None
    try:
        problem, record = _open_check_cache(study).inspect_folder(node, study.get_node_folder(node))
        if problem is None:
            return DONE, None, record or read_record(file)
    except RecordError as error:
        problem = str(error)
    return DAMAGED, " ".join(problem.split()), None


def read_folder_state(folder: Path) -> tuple[str, str | None]:
    """Return the state and the error of a node, given only its folder.

    An unreadable record counts as damaged.
    """

    def find_problem() -> str | None:
        """Describe the damage to the record in the folder, or return None."""
        try:
            return find_damage(folder, folder.name[-SHORT:])
        except RecordError as error:
            return str(error)

    return _read_state(folder, find_problem)


def _read_state(folder: Path, damage: Callable[[], str | None]) -> tuple[str, str | None]:
    if not os.path.lexists(folder / RECORD):
        seen = read_unfinished_state(folder)
        return seen.state, seen.error
    problem = damage()
    return (DAMAGED, problem) if problem else (DONE, None)


def find_node_damage(study: Study, node: Node) -> str | None:
    """Describe the problem with a node's record or with files that the record lists.

    Large files are judged by sizes and times (``find_damage``). Return None if there is no problem,
    or no record.

    Raises:
        RecordError: a file cannot be read.
    """
    return _open_check_cache(study).find_damage(node, study.get_node_folder(node))


def save_check_cache(study: Study) -> None:
    """Save the cache of valid records for the next start."""
    _open_check_cache(study).save()


def list_file_names(folder: str | Path) -> frozenset[str] | None:
    """Return the names of the entries in a node's folder, or None if there is no folder."""
    try:
        return frozenset(entry.name for entry in os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _open_check_cache(study: Study) -> ValidFolderCache:
    return get_valid_folder_cache(study.config.results, os.getcwd())  # noqa: PTH109  # thousands of times


STAGES = "stages"
_SEEDED = re.compile(r"^seed-?\d+-([0-9a-f]{12})$")
LAYOUT = {
    STAGES: (4, _SEEDED),
    "fits": (3, _SEEDED),
    "evaluations": (2, re.compile(r"^([0-9a-f]{12})$")),
    "data/derived": (1, re.compile(r"^.+-([0-9a-f]{12})$")),
}
"""Folder of a kind of node → levels of folders above a node's own, and pattern of its name.

The name ends in the digest.
"""


_ADDRESS = re.compile(rf"(?:.*-)?([0-9a-f]{{{SHORT}}})")
"""Name of a node's folder, which ends in the first digits of the node's digest."""


@dataclass(frozen=True, slots=True)
class NodeFolder:
    """A node's folder found by the layout.

    ``path``: path relative to the results folder. ``digest``: first 12 hex digits of the digest, in
    which the path ends.
    """

    results: Path
    path: str
    digest: str

    @property
    def folder(self) -> Path:
        return self.results / self.path

    @property
    def is_stage(self) -> bool:
        return self.path.startswith(f"{STAGES}/")


def iterate_node_folders(results: Path) -> Iterator[NodeFolder]:
    """Yield the folder of every node in a results folder, sorted by name.

    Links are not followed, and folders that do not fit the layout are ignored.
    """
    for top, (levels, name) in LAYOUT.items():
        folders = [] if is_through_link(results, top) else [results / top]
        for _ in range(levels + 1):
            folders = [inner for folder in folders for inner in _list_folders(folder)]
        for folder in folders:
            if match := name.match(folder.name):
                yield NodeFolder(results, folder.relative_to(results).as_posix(), match[1])


def is_through_link(results: Path, below: str) -> bool:
    """Return whether a path in a results folder is a link, or lies below a link."""
    inner = Path(below)
    return any((results / part).is_symlink() for part in (inner, *inner.parents[:-1]))


def _list_folders(folder: Path) -> list[Path]:
    try:
        entries = [Path(e.path) for e in os.scandir(folder) if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(entries)


def compute_node_path(record: Any) -> str:
    """Return the path where a record belongs in the results folder, from its content."""
    node = record["node"]
    short, identity, dataset = node["digest"][:SHORT], node["identity"], node["dataset"]
    if node["kind"] == "stage":
        name = f"{node['step']}/{dataset}/{node['model']}/{node['label']}"
        return f"{STAGES}/{name}/seed{node['seed']}-{short}"
    if node["kind"] == "fit":
        name = f"{identity['learner']}/{dataset}/{node['label']}"
        return f"fits/{name}/seed{identity['seed']}-{short}"
    if node["kind"] == "evaluation":
        return f"evaluations/{dataset}/{node['label']}/{short}"
    return f"data/derived/{identity['derived']['recipe']}/{dataset}-{short}"


def find_misplaced_records(study: Study, nodes: Mapping[str, Node]) -> Iterator[tuple[str, str]]:
    """Yield the path and the problem of each record that is in a wrong folder."""
    results = Path(study.config.results)
    by_digits = {digest[:SHORT]: node for digest, node in nodes.items()}
    places = {study.get_record_path(node) for node in nodes.values()}
    for root in sorted({node.path.split("/", 1)[0] for node in nodes.values()}):
        for path in _list_records(results / root):
            address = _ADDRESS.fullmatch(path.parent.name)
            if str(path) in places or (address and address[1] not in by_digits):
                continue
            node = nodes.get(_read_digest(path) or "")
            if node is not None:
                belongs = f"{node.path}/{RECORD}"
                error = (
                    f"{path}: The record of {node.label} belongs at {belongs}, so it is excluded"
                )
                yield path.relative_to(results).as_posix(), error


def _list_records(folder: Path) -> list[Path]:
    """Return all paths below a folder that have a record's name, including folders and links."""
    return sorted(
        Path(path, RECORD)
        for path, folders, files in os.walk(folder)
        if RECORD in files or RECORD in folders
    )


def _read_digest(path: Path) -> str | None:
    """Return the node digest in a record, or None if the record cannot be read."""
    try:
        return read_record(path)["node"]["digest"]
    except RecordError:
        return None


LAYERS = "data/layers"
"""Folder of cached representations, relative to the results folder.

The fits of a model's layers share them.
"""
LAYERS_VERSION = 1
LAYER = "layer"
"""Setting of a fit that reads one layer: its number."""


def get_layer_folder_name(node: Fit) -> str:
    """Return the folder that the fits of a model's layers share, relative to the results folder."""
    settings = node.settings
    read = {name: settings.get(name) for name in ("model", "representation", "limit_train")}
    data = node.data.build_identity(node.tasks)
    identity = {"version": LAYERS_VERSION, **read, "data": data, "tasks": list(node.tasks)}
    return f"{LAYERS}/{compute_digest(identity)[:SHORT]}"


def list_needed_layer_folders(study: Study) -> Iterator[str]:
    """Yield the folders of representations that unfinished fits of a study need."""
    for fit in study.plan.fits:
        if LAYER in fit.settings and not is_finished(study, fit):
            yield f"{study.config.results}/{get_layer_folder_name(fit)}"
