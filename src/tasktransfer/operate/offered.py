"""What a results folder offers: the folders of its nodes, and their records, checked before any is
taken."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from tasktransfer.core.nodes import SHORT, Node, Stage
from tasktransfer.errors import RecordError
from tasktransfer.operate.forecast.model_size import tensor_shapes
from tasktransfer.results.artefacts import checked as checked_artefacts
from tasktransfer.results.damage import Artefacts, damage, node_damage
from tasktransfer.results.node_records import (
    ROWS,
    NodeRecord,
    parts_of,
    read_node_record,
    read_rows,
)
from tasktransfer.results.predictions import read_predictions
from tasktransfer.results.records import PredictionsFile, Record, comparable, read_record
from tasktransfer.results.rounds import CHECKPOINT, ROUNDS
from tasktransfer.results.state import PREDICTIONS, RECORD

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


@dataclass(frozen=True, slots=True)
class Recorded:
    """A node's record, and what it names beside it: the file of predictions or rows, and parts
    (files and folders)."""

    record: Record | NodeRecord
    digest: str
    rows_file: str
    rows: PredictionsFile | None
    parts: tuple[str, ...]

    def table(self, folder: Path) -> pa.Table:
        """The predictions or rows.

        Raises:
            RecordError: they are absent or damaged.
        """
        if self.rows_file == ROWS:
            return read_rows(folder)
        # Older files do not have the dialogues; the instances and answers are what is compared.
        return read_predictions(folder / PREDICTIONS, self.rows).drop_columns(["dialogue_id"])


def recorded(folder: Path, *, is_stage: bool) -> Recorded:
    """What the record in a node's folder says.

    Raises:
        RecordError: it is absent or damaged.
    """
    if is_stage:
        record = read_record(folder / RECORD)
        return Recorded(record, record["stage"]["digest"], PREDICTIONS, record["predictions"], ())
    other = read_node_record(folder)
    return Recorded(other, other["node"]["digest"], ROWS, other["rows"], tuple(parts_of(other)))


def offered(place: Place, node: Node | None) -> Recorded:
    """The record of a place, after everything that can be checked about it alone.

    Args:
        node: what this study expects there; None: anything.

    Raises:
        RecordError: damaged, of another schema or digest, at odds with its place, or not what this
            study calls by that digest.
    """
    told = recorded(place.folder, is_stage=place.is_stage)
    path = _path_of(told.record)
    problem = None
    if path != place.path:
        problem = f"is the record of {path}, but lies under {place.path}"
    elif node is not None and told.digest != node.digest:
        problem = f"digest is {told.digest}, expected {node.digest}"
    elif isinstance(node, Stage):
        tested = tuple(sorted(cast(Record, told.record)["test"]))
        if tested != node.tested:
            problem = f"test: {', '.join(tested) or 'no task'}, expected {', '.join(node.tested)}"
    if problem:
        raise RecordError(f"{place.folder / RECORD}: {problem}")
    return told


def _path_of(record: Any) -> str:
    """Where a record belongs, by what it says of itself."""
    node = record.get("stage") or record["node"]
    short, identity, dataset = node["digest"][:SHORT], node["identity"], node["dataset"]
    if "stage" in record:
        name = f"{node['kind']}/{dataset}/{node['model']}/{node['label']}"
        return f"{STAGES}/{name}/seed{node['seed']}-{short}"
    if node["kind"] == "fit":
        name = f"{identity['learner']}/{dataset}/{node['label']}"
        return f"fits/{name}/seed{identity['seed']}-{short}"
    if node["kind"] == "evaluation":
        return f"evaluations/{dataset}/{node['label']}/{short}"
    return f"data/derived/{identity['derived']['recipe']}/{dataset}-{short}"


def check_files(place: Place, told: Recorded) -> None:
    """Refuse what a record names beside it unless it is there, whole, and of this node.

    Raises:
        RecordError: a file is absent, damaged, a link, or not the one the record was written with.
    """
    # A stage's weights are another matter: its record is right without them (parameters_problem).
    content: Artefacts = "none" if place.is_stage else "all"
    problem = (damage if place.is_stage else node_damage)(place.folder, told.digest, content)
    files = [told.rows_file] * (told.rows is not None)
    links = [link for part in (*files, *told.parts) for link in _links(place.folder / part)]
    if problem or links:
        raise RecordError(problem or f"{links[0]}: is a link; give the file itself")
    if told.rows is not None:
        footer = told.table(place.folder).schema.metadata or {}
        digest = footer.get(b"stage" if place.is_stage else b"node", b"").decode(errors="replace")
        if digest != told.digest:
            file = place.folder / told.rows_file
            raise RecordError(f"{file}: is of {digest or 'no node'}, its record is of another")


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


def renamed(told: Recorded, model: str) -> Recorded:
    """A stage's record as this study would have it, where the other calls the model otherwise."""
    record = cast(Record, told.record)
    theirs = record["stage"]["model"]
    if theirs == model:
        return told
    note = f"merged: the model was called {theirs}"
    provenance = record["provenance"] | {"notes": [*record["provenance"]["notes"], note]}
    stage = record["stage"] | {"model": model}
    return replace(told, record={**record, "stage": stage, "provenance": provenance})


# --- comparing ----------------------------------------------------------------------------------


def differences(ours: Recorded, theirs: Recorded) -> list[str]:
    """Where two records of one node differ, but for provenance and times: ``key: ours, theirs``.
    The digest of the file of rows is left out: equal rows may be packed otherwise."""
    mine, other = (_flat(_comparable(told)) for told in (ours, theirs))
    absent = object()
    return [
        f"{key}: {mine.get(key, absent)!r} here, {other.get(key, absent)!r} there"
        if key in mine and key in other
        else f"{key}: only {'here' if key in mine else 'there'}"
        for key in sorted(mine.keys() | other.keys())
        if mine.get(key, absent) != other.get(key, absent)
    ]


def _comparable(told: Recorded) -> dict[str, Any]:
    if told.rows_file == PREDICTIONS:
        kept = comparable(cast(Record, told.record))
        # The untrained model is measured where it is asked for, and that is no part of a training.
        kept["rounds"] = [one for one in kept["rounds"] if one["round"] > 0]
    else:
        # Equal classifiers and tables may be packed otherwise, as rows.
        left_out = ("provenance", "artefacts")
        kept = {key: value for key, value in told.record.items() if key not in left_out}
        # What a study calls it is its own.
        kept["node"] = {**cast(NodeRecord, told.record)["node"], "label": None}
    name = Path(told.rows_file).stem
    return {**kept, name: {**told.rows, "sha256": None} if told.rows else None}


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
