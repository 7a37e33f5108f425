"""The layout of a results folder: where nodes of each kind lie, and which folders are nodes'."""

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
"""Folder of a kind of node → how many levels of folders come before a node's own, and the name of
that, which ends in the digest."""


@dataclass(frozen=True, slots=True)
class NodeFolder:
    """A node's folder by the layout. ``path`` is relative to the results folder; ``digest``: the
    first 12 hex digits, as the path ends in them."""

    results: Path
    path: str
    digest: str

    @property
    def folder(self) -> Path:
        return self.results / self.path

    @property
    def is_stage(self) -> bool:
        return self.path.startswith(f"{STAGES}/")


def node_folders(results: Path) -> Iterator[NodeFolder]:
    """Every node's folder of a results folder, in the order of their names. Links are not followed,
    and what does not fit the layout is not looked at."""
    for room, (levels, name) in LAYOUT.items():
        folders = [] if through_link(results, room) else [results / room]
        for _ in range(levels + 1):
            folders = [inner for folder in folders for inner in _folders(folder)]
        for folder in folders:
            if match := name.match(folder.name):
                yield NodeFolder(results, folder.relative_to(results).as_posix(), match[1])


def through_link(results: Path, below: str) -> bool:
    """Return whether a path below a results folder is a link, or lies in one."""
    inner = Path(below)
    return any((results / part).is_symlink() for part in (inner, *inner.parents[:-1]))


def _folders(folder: Path) -> list[Path]:
    try:
        entries = [Path(e.path) for e in os.scandir(folder) if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(entries)


def path_of(record: Any) -> str:
    """Where a record belongs, by what it says of itself."""
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
