"""Files in a results folder that no run of the given studies needs, and their removal.

Records and predictions are small but expensive to recompute. Those of other studies and settings
are kept unless their removal is requested. Only the files named below are removed. Links are
neither followed nor removed, and folders in which a job runs are left alone. If a job runs that is
not in any of the given studies, another workflow uses the folder. In that case, all files of other
studies are kept.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tasktransfer.config import TINY
from tasktransfer.core.nodes import Node, Stage
from tasktransfer.errors import ConfigError, RecordError, format_quantity
from tasktransfer.files import locks
from tasktransfer.files.progress import show_progress
from tasktransfer.operate.forecast.disk import format_bytes, measure_bytes
from tasktransfer.operate.offered_records import PARAMETERS
from tasktransfer.results.node_folders import (
    LAYERS,
    LAYOUT,
    NodeFolder,
    is_needed,
    is_through_link,
    iterate_node_folders,
    list_needed_layer_folders,
)
from tasktransfer.results.records import list_parts, read_record
from tasktransfer.results.state import (
    CLAIM,
    HISTORY,
    JOB_LOG,
    LOG,
    RECORD,
    RESUME,
    ROWS,
    is_in_use,
    try_to_claim_folder,
)
from tasktransfer.results.study import Study

GarbageKind = Literal[
    "records and predictions of other settings",
    "checkpoints of other settings",
    "unfinished work of other settings",
    "checkpoints that nothing starts from any more",
    "states of trainings that are finished",
    "half-written files",
    "caches of other data or models",
    "models of other settings",
]

_PART = re.compile(r"^\..+\.\d+\.part$")
_ARROW = re.compile(r"^(.+\.arrow|manifest\.json)$")
_DRAFT = re.compile(r"^\.(?P<name>.+?)\.(?:\d+\.part|draft|old)$")
_ROOMS = frozenset(Path(room).name for room in LAYOUT)
_CACHES = {
    "data": re.compile(r"^tiny-world-[0-9a-f]{12}$"),
    "data/instances": re.compile(r"^[A-Za-z]+-[0-9a-f]{12}-(few|full)$"),
    LAYERS: re.compile(r"^[0-9a-f]{12}$"),
    "models": re.compile(r"^.+-[0-9a-f]{12}$"),
}
_CACHE_KINDS: dict[str, GarbageKind] = {"models": "models of other settings"}
_ENCODED_OF = re.compile(r"^\w+-[0-9a-f]{12}(-few|-full)?$")
"""Name of a folder of encoded instances, read or derived."""
_ENCODED = re.compile(r"^.+-[0-9a-f]{12}$")


@dataclass(frozen=True, slots=True)
class Item:
    """Something to remove: related paths in one folder, and their bytes.

    ``held_by``: the node's folder or the cache that must not be in use during removal.
    """

    kind: GarbageKind
    paths: tuple[str, ...]
    bytes: int
    held_by: str
    of_node: bool


@dataclass(frozen=True, slots=True)
class Garbage:
    """Files that can be removed.

    ``kept``: folders of unneeded records that are kept, with their bytes. ``remarks``: skipped
    files, with reasons.
    """

    results: str
    items: tuple[Item, ...]
    kept: tuple[tuple[str, int], ...]
    remarks: tuple[str, ...]

    @property
    def bytes(self) -> int:
        return sum(item.bytes for item in self.items)

    def as_json(self) -> dict[str, Any]:
        return {
            "results": self.results,
            "bytes": self.bytes,
            "items": [asdict(item) for item in self.items],
            "kept": [{"path": path, "bytes": size} for path, size in self.kept],
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True, slots=True)
class RemovalResult:
    """Result of a removal."""

    items: int
    bytes: int
    left: tuple[str, ...]

    def as_text(self) -> str:
        lines = [f"left alone: {text}" for text in self.left]
        return "\n".join(
            [*lines, f"removed {format_quantity(self.items, 'item')}, {format_bytes(self.bytes)}"]
        )


def find_garbage(studies: Sequence[Study], *, records: bool = False) -> Garbage:
    """Find files in a shared results folder that no study needs.

    Args:
        studies: all studies that use the folder; their inputs must be known.
        records: include records and predictions of other settings.

    Raises:
        ConfigError: the studies have different results folders.
    """
    results = _resolve_shared_folder(studies)
    wanted = {node.path: node for study in studies for node in study.plan.nodes}
    remarks = list(_collect_link_remarks(results))
    there = list(iterate_node_folders(results))
    foreign = [p for p in there if p.path not in wanted and is_in_use(p.folder)]
    settled = not any(study.pending_choices for study in studies)
    if foreign:
        remarks.append(
            f"{foreign[0].folder} is in use, but not by these studies, so files of other studies "
            "are kept. Specify their configs too (--config FIRST SECOND)."
        )
    if not settled:
        remarks.append(
            "a choice that the plan depends on is still pending, so files of other settings are "
            "kept, since some may be chosen again"
        )
    items: list[Item] = []
    kept: list[tuple[str, int]] = []
    for node_folder in show_progress(there, "looking at folders"):
        if node_folder.path in wanted:
            items += _collect_from_planned(node_folder, wanted[node_folder.path], studies)
        elif settled and not foreign:
            removed, stays = _collect_from_unplanned(node_folder, records=records)
            items += removed
            kept += stays
    items += _collect_caches(results, studies, leave_whole=bool(foreign))
    return Garbage(str(results), tuple(items), tuple(kept), tuple(remarks))


def _resolve_shared_folder(studies: Sequence[Study]) -> Path:
    folders = {Path(study.config.results).resolve() for study in studies}
    if len(folders) > 1:
        named = ", ".join(f"{s.config_file}: {s.config.results}" for s in studies)
        raise ConfigError(
            f"--config: The studies have different results folders ({named}). Run the command "
            "once per folder."
        )
    return Path(studies[0].config.results)


def _collect_link_remarks(results: Path) -> Iterator[str]:
    """Yield remarks on links in the upper folders, which are not followed."""
    for name in (*LAYOUT, *_CACHES, "data/encoded"):
        if (results / name).is_symlink():
            yield f"{results / name} is a link, which is not followed"


# --- nodes --------------------------------------------------------------------------------------


def _collect_from_planned(
    node_folder: NodeFolder, node: Node, studies: Sequence[Study]
) -> Iterator[Item]:
    """Yield the removable files of a planned node.

    These are resume states and half-written files, and a stage's parameters if no study keeps or
    needs them.
    """
    if is_in_use(node_folder.folder):
        return
    names = _list_names(node_folder.folder)
    if RECORD in names and isinstance(node, Stage):
        yield from _collect_items(
            "states of trainings that are finished", node_folder, names, [RESUME]
        )
        mine = [s for s in studies if node_folder.digest in s.plan.by_digest]
        if not any(s.keeps_checkpoints(node.kind) or is_needed(s, node) for s in mine):
            kind: GarbageKind = "checkpoints that nothing starts from any more"
            yield from _collect_items(kind, node_folder, names, PARAMETERS)
    yield from _collect_items("half-written files", node_folder, names, _list_partial_files(names))


def _collect_from_unplanned(
    node_folder: NodeFolder, *, records: bool
) -> tuple[list[Item], list[tuple[str, int]]]:
    """Return the removable files and the kept files of a node outside all plans."""
    if is_in_use(node_folder.folder):
        return [], []
    names = _list_names(node_folder.folder)
    bulk = (
        [*PARAMETERS, RESUME, *_list_partial_files(names)]
        if node_folder.is_stage
        else _list_partial_files(names)
    )
    small = [RECORD, ROWS, LOG, JOB_LOG]
    try:
        parts = list_parts(read_record(node_folder.folder / RECORD))
    except RecordError:
        # The node is unfinished: only files with the fixed names of its kind are recognized.
        parts = [name for name in sorted(names) if _ARROW.match(name)]
    small += [*parts, HISTORY, CLAIM]
    if RECORD in names and not records:
        stays = sum(measure_bytes(node_folder.folder / name) for name in small if name in names)
        kind: GarbageKind = (
            "checkpoints of other settings" if node_folder.is_stage else "half-written files"
        )
        return list(_collect_items(kind, node_folder, names, bulk)), [
            (str(node_folder.folder), stays)
        ]
    kind = "records and predictions of other settings"
    if RECORD not in names:
        kind = "unfinished work of other settings"
    return list(_collect_items(kind, node_folder, names, [*bulk, *small])), []


def _list_names(folder: Path) -> frozenset[str]:
    """Return the names of entries in a folder, except links."""
    try:
        return frozenset(e.name for e in os.scandir(folder) if not e.is_symlink())
    except OSError:
        return frozenset()


def _list_partial_files(names: frozenset[str]) -> list[str]:
    return sorted(name for name in names if _PART.match(name))


def _collect_items(
    kind: GarbageKind, node_folder: NodeFolder, names: frozenset[str], wanted: Sequence[str]
) -> Iterator[Item]:
    paths = [str(node_folder.folder / name) for name in wanted if name in names]
    if paths:
        size = sum(measure_bytes(path) for path in paths)
        yield Item(kind, tuple(paths), size, str(node_folder.folder), of_node=True)


# --- caches and models --------------------------------------------------------------------------


def _collect_caches(
    results: Path, studies: Sequence[Study], *, leave_whole: bool
) -> Iterator[Item]:
    """Yield unused caches and models, and files that killed processes left."""
    needed = {
        results / Path(path).relative_to(study.config.results)
        for study in studies
        for path in _list_needed_caches(study)
    }
    for folder, pattern in _list_cache_folders(results):
        for name in sorted(_list_names(folder)):
            path, draft = folder / name, _DRAFT.match(name)
            held_by, kind = path, _CACHE_KINDS.get(folder.name, "caches of other data or models")
            if draft and pattern.match(draft["name"]):
                held_by, kind = folder / draft["name"], "half-written files"
            elif not pattern.match(name) or path in needed or leave_whole:
                continue
            yield Item(kind, (str(path),), measure_bytes(path), str(held_by), of_node=False)


def _list_cache_folders(results: Path) -> Iterator[tuple[Path, re.Pattern[str]]]:
    """Yield the folders of caches, each with a pattern of its caches' names, except links."""
    for below, pattern in _CACHES.items():
        if not is_through_link(results, below):
            yield results / below, pattern
    if not is_through_link(results, "data/encoded"):
        for name in sorted(_list_names(results / "data/encoded")):
            if _ENCODED_OF.match(name):
                yield results / "data/encoded" / name, _ENCODED


def _list_needed_caches(study: Study) -> Iterator[str]:
    """Yield the caches and built models that a study reads or depends on."""
    tiny = [model.name for model in study.config.models if model.checkpoint == TINY]
    if study.reads_tiny_world or tiny:
        yield study.tiny_world
    for model in study.config.models:
        if model.is_created:
            yield study.get_created_model_folder(model.name)
    if tiny:
        yield from study.tiny_texts
    for dataset in study.config.dataset_names:
        yield study.get_instances_folder(dataset)
    yield from list_needed_layer_folders(study)
    yield from study.encoded_folders


# --- removing -----------------------------------------------------------------------------------


def remove_garbage(garbage: Garbage) -> RemovalResult:
    """Remove the files from ``find_garbage``, and return the removed items.

    Each folder is locked during its removal, as a job would lock it. Folders now in use are left
    alone.
    """
    count, freed, left = 0, 0, []
    for item in show_progress(garbage.items, "removing"):
        with _try_lock_item(item) as held:
            if not held:
                left.append(f"{item.paths[0]}: in use now")
                continue
            try:
                for path in item.paths:
                    _remove_path(Path(path))
                if item.of_node:
                    _remove_empty_folders(Path(item.held_by))
            except OSError as error:
                left.append(f"{error.filename or item.paths[0]}: {error.strerror}")
                continue
        count, freed = count + 1, freed + item.bytes
    return RemovalResult(count, freed, tuple(left))


@contextmanager
def _try_lock_item(item: Item) -> Iterator[bool]:
    path = Path(item.held_by)
    if item.of_node:
        with try_to_claim_folder(path) as held:
            yield held
        return
    with (path.parent / f".{path.name}.lock").open("a") as stream:
        yield locks.try_lock(stream.fileno())


def _remove_path(path: Path) -> None:
    """Remove a file or folder, but refuse links and paths through links.

    Links are created by users.
    """
    if path.is_symlink():
        raise OSError(0, "has become a link", str(path))
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _remove_empty_folders(folder: Path) -> None:
    """Remove the empty folders of a node, up to the folder of its kind.

    Folders with other files are kept.
    """
    names = _list_names(folder)
    if names <= {CLAIM} and not any(e.is_symlink() for e in os.scandir(folder)):
        with suppress(OSError):
            (folder / CLAIM).unlink(missing_ok=True)
            for path in (folder, *folder.parents):
                if path.name in _ROOMS:
                    break
                path.rmdir()
