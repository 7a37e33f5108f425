"""Layout of a results folder: paths for each kind of node, and recognition of node folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.core.nodes import SHORT

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
    """Yield every node's folder in a results folder, sorted by name.

    Links are not followed, and folders that do not fit the layout are ignored.
    """
    for room, (levels, name) in LAYOUT.items():
        folders = [] if is_through_link(results, room) else [results / room]
        for _ in range(levels + 1):
            folders = [inner for folder in folders for inner in _list_folders(folder)]
        for folder in folders:
            if match := name.match(folder.name):
                yield NodeFolder(results, folder.relative_to(results).as_posix(), match[1])


def is_through_link(results: Path, below: str) -> bool:
    """Return whether a path below a results folder is a link or is inside one."""
    inner = Path(below)
    return any((results / part).is_symlink() for part in (inner, *inner.parents[:-1]))


def _list_folders(folder: Path) -> list[Path]:
    try:
        entries = [Path(e.path) for e in os.scandir(folder) if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(entries)


def compute_path(record: Any) -> str:
    """Return the path where a record belongs, computed from its content."""
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
