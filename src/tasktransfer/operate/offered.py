"""What a results folder offers: the folders of its nodes, and their records, checked before any is
taken."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.core.nodes import SHORT, Node, Stage
from tasktransfer.errors import RecordError
from tasktransfer.operate.forecast.model_size import tensor_shapes
from tasktransfer.results.artefacts import checked as checked_artefacts
from tasktransfer.results.damage import Artefacts, damage
from tasktransfer.results.records import (
    comparable,
    is_stage,
    parts_of,
    read_record,
    selected_on,
    without_selection,
)
from tasktransfer.results.rounds import CHECKPOINT, ROUNDS
from tasktransfer.results.rows import made_by, read_rows
from tasktransfer.results.schema import Record
from tasktransfer.results.state import RECORD

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

PARAMETERS = (CHECKPOINT, ROUNDS)
"""What a stage leaves for others to start from; not part of its record."""


@dataclass(frozen=True, slots=True)
class Place:
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


def places(results: Path) -> Iterator[Place]:
    """Every node's folder of a results folder, in the order of their names. Links are not followed,
    and what does not fit the layout is not looked at."""
    for room, (levels, name) in LAYOUT.items():
        folders = [] if through_link(results, room) else [results / room]
        for _ in range(levels + 1):
            folders = [inner for folder in folders for inner in _folders(folder)]
        for folder in folders:
            if match := name.match(folder.name):
                yield Place(results, folder.relative_to(results).as_posix(), match[1])


def through_link(results: Path, below: str) -> bool:
    """Whether a folder of the layout is a link, or lies in one."""
    inner = Path(below)
    return any((results / part).is_symlink() for part in (inner, *inner.parents[:-1]))


def _folders(folder: Path) -> list[Path]:
    try:
        entries = [Path(e.path) for e in os.scandir(folder) if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(entries)


# --- one node -----------------------------------------------------------------------------------


def offered(place: Place, node: Node | None) -> Record:
    """The record of a place, after everything that can be checked about it alone.

    Args:
        node: what this study expects there; None: anything.

    Raises:
        RecordError: damaged, of another schema or digest, at odds with its place, or not what this
            study calls by that digest.
    """
    record = read_record(place.folder / RECORD)
    path, digest, problem = _path_of(record), record["node"]["digest"], None
    if path != place.path:
        problem = f"is the record of {path}, but lies under {place.path}"
    elif node is not None and digest != node.digest:
        problem = f"digest is {digest}, expected {node.digest}"
    elif isinstance(node, Stage):
        untested = [task for task in node.tested if task not in record["results"]]
        problem = without_selection(node, record)
        if problem is None and untested:
            said = ", ".join(record["results"]) or "no task"
            problem = f"results: {said}, expected {', '.join(node.tested)}"
    if problem:
        raise RecordError(f"{place.folder / RECORD}: {problem}")
    return record


def _path_of(record: Any) -> str:
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


def check_files(place: Place, record: Record) -> None:
    """Refuse what a record names beside it unless it is there, whole, and of this node.

    Raises:
        RecordError: a file is absent, damaged, a link, or not the one the record was written with.
    """
    # A stage's weights are another matter: its record is right without them (parameters_problem).
    content: Artefacts = "none" if place.is_stage else "all"
    digest, rows = record["node"]["digest"], record["rows"]
    problem = damage(place.folder, digest, content)
    files = [rows["file"]] if rows else []
    links = [link for part in (*files, *parts_of(record)) for link in _links(place.folder / part)]
    if problem or links:
        raise RecordError(problem or f"{links[0]}: is a link; give the file itself")
    if rows is not None:
        file = place.folder / rows["file"]
        maker = made_by(read_rows(file, rows))
        if maker != digest:
            raise RecordError(f"{file}: is of {maker or 'no node'}, its record is of another")


def parameters_problem(folder: Path, digest: str) -> str | None:
    """What is wrong with a stage's folder of parameters; None: nothing, or there is none."""
    if links := _links(folder):
        return f"{links[0]}: is a link"
    if not folder.is_dir():
        return None
    weights = sorted(folder.rglob("*.safetensors"))
    if not weights:
        return f"{folder}: holds no *.safetensors"
    cut = [file for file in weights if tensor_shapes(file) is None]
    if cut:
        return f"{cut[0]}: damaged or cut off"
    try:
        checked_artefacts(folder.parent, digest, [folder.name])
    except RecordError as error:
        return str(error)
    return None


def _links(path: Path) -> list[Path]:
    """The links that something is or holds."""
    inner = [] if path.is_symlink() or not path.is_dir() else sorted(path.rglob("*"))
    return [each for each in (path, *inner) if each.is_symlink()]


def renamed(record: Record, model: str) -> Record:
    """A stage's record as this study would have it, where the other calls the model otherwise."""
    node = record["node"]
    if node["kind"] != "stage" or node["model"] == model:
        return record
    note = f"merged: the model was called {node['model']}"
    provenance = record["provenance"] | {"notes": [*record["provenance"]["notes"], note]}
    return {**record, "node": node | {"model": model}, "provenance": provenance}


# --- comparing ----------------------------------------------------------------------------------


def differences(ours: Record, theirs: Record) -> list[str]:
    """Where two records of one node differ, but for provenance and times: ``key: ours, theirs``.
    The digest of the file of rows is left out: equal rows may be packed otherwise. Of a training
    that was asked for other selections here than there, what both have is compared."""
    shared = shared_tasks(ours, theirs)
    mine, other = (_flat(_comparable(record, shared)) for record in (ours, theirs))
    absent = object()
    return [
        f"{key}: {mine.get(key, absent)!r} here, {other.get(key, absent)!r} there"
        if key in mine and key in other
        else f"{key}: only {'here' if key in mine else 'there'}"
        for key in sorted(mine.keys() | other.keys())
        if mine.get(key, absent) != other.get(key, absent)
    ]


def shared_tasks(ours: Record, theirs: Record) -> set[str] | None:
    """The tasks that chose a round both here and there, each alone; None: the selections are the
    same, so that all of the records can be compared."""
    if not (is_stage(ours) and is_stage(theirs)):
        return None
    here, there = {*selected_on(ours)}, {*selected_on(theirs)}
    return None if here == there else {tasks[0] for tasks in here & there if len(tasks) == 1}


def _comparable(record: Record, shared: set[str] | None) -> dict[str, Any]:
    # Equal classifiers and tables may be packed otherwise, as rows.
    kept = comparable(record)
    if "training" in kept:
        # The untrained model is measured where it is asked for, and that is no part of a training.
        rounds = [one for one in kept["training"]["rounds"] if one["round"] > 0]
        if shared is not None:
            return _of_tasks(kept, rounds, shared)
        selections = [
            {**one, "scores": one["scores"][-len(rounds) :]}
            for one in kept["training"]["selections"]
        ]
        kept["training"] = {"rounds": rounds, "selections": selections}
    else:
        kept["node"] = {**kept["node"], "label": None}  # what a study calls it is its own
    rows = kept["rows"]
    return {**kept, "rows": rows and {**rows, "sha256": None, "file": None}}


def _of_tasks(
    kept: dict[str, Any], rounds: list[dict[str, Any]], tasks: set[str]
) -> dict[str, Any]:
    """What of a training follows from its updates, and from some selecting tasks."""
    selections = kept["training"]["selections"]
    return {
        "node": kept["node"],
        "losses": [one["train_loss"] for one in rounds],
        "dev": [{t: v for t, v in one["dev"].items() if t in tasks} for one in rounds],
        "chosen": {
            one["select_on"][0]: [one["round"], one["dev_score"]]
            for one in selections
            if {*one["select_on"]} <= tasks
        },
        "results": {t: v for t, v in kept["results"].items() if t in tasks},
    }


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        parts = [(f"{path}.{key}" if path else str(key), item) for key, item in value.items()]
    elif isinstance(value, list):
        parts = [(f"{path}[{number}]", item) for number, item in enumerate(value)]
    else:
        return {path: value}
    leaves: dict[str, Any] = {} if parts else {path: type(value).__name__}
    for key, item in parts:
        leaves |= _flat(item, key)
    return leaves
