"""Layout of a results folder: paths of nodes, their folders, and records in the wrong folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.core.nodes import SHORT, Node
from tasktransfer.errors import RecordError
from tasktransfer.results.records import read_record
from tasktransfer.results.state import RECORD
from tasktransfer.results.study import Study

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
