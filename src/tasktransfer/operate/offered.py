"""What a results folder offers: records of its nodes, checked before any is taken."""

from __future__ import annotations

import os
from pathlib import Path

from tasktransfer.core.nodes import Node, Stage
from tasktransfer.errors import RecordError
from tasktransfer.files.tensors import tensor_shapes
from tasktransfer.results.artefacts import checked as checked_artefacts
from tasktransfer.results.damage import Artefacts, damage
from tasktransfer.results.places import NodeFolder, path_of
from tasktransfer.results.records import (
    parts_of,
    read_record,
    what_is_left,
    without_selection,
)
from tasktransfer.results.rounds import CHECKPOINT, ROUNDS
from tasktransfer.results.rows import made_by, read_rows
from tasktransfer.results.schema import Record
from tasktransfer.results.state import RECORD

PARAMETERS = (CHECKPOINT, ROUNDS)
"""What a stage leaves for others to start from; not part of its record."""


def offered(node_folder: NodeFolder, node: Node | None) -> Record:
    """The record of a place, after everything that can be checked about it alone.

    Args:
        node: what this study expects there; None: anything.

    Raises:
        RecordError: damaged, of another schema or digest, at odds with its place, or not what this
            study calls by that digest.
    """
    file = node_folder.folder / RECORD
    record = read_record(file)
    try:
        path, _ = path_of(record), parts_of(record)
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"{file}: node.identity: is not that of any node ({error!r})") from error
    digest, problem = record["node"]["digest"], None
    if path != node_folder.path:
        problem = f"is the record of {path}, but lies under {node_folder.path}"
    elif node is not None and digest != node.digest:
        problem = f"digest is {digest}, expected {node.digest}"
    elif isinstance(node, Stage):
        untested = [task for task in node.tested if task not in record["results"]]
        problem = without_selection(node, record)
        if problem is None and untested:
            tasks = ", ".join(record["results"]) or "no task"
            problem = f"results: {tasks}, expected {', '.join(node.tested)}"
    if problem:
        raise RecordError(f"{file}: {problem}")
    return record


def check_files(node_folder: NodeFolder, record: Record) -> None:
    """Refuse what a record names beside it unless it is there, whole, and of this node.

    Raises:
        RecordError: a file is absent, damaged, a link, or not the one the record was written with.
    """
    # A stage's weights are another matter: its record is right without them (parameters_problem).
    content: Artefacts = "none" if node_folder.is_stage else "all"
    digest, rows = record["node"]["digest"], record["rows"]
    problem = damage(node_folder.folder, digest, content)
    files = [rows["file"]] if rows else []
    parts = (*files, *what_is_left(record["node"], record["sizes"]))
    odd = [file for part in parts for file in _irregular(node_folder.folder / part)]
    if problem or odd:
        raise RecordError(problem or f"{odd[0]}: is a link or no file; give the file itself")
    if rows is not None:
        file = node_folder.folder / rows["file"]
        maker = made_by(read_rows(file, rows))
        if maker != digest:
            raise RecordError(f"{file}: is of {maker or 'no node'}, its record is of another")


def parameters_problem(folder: Path, digest: str) -> str | None:
    """What is wrong with a stage's folder of parameters; None: nothing, or there is none."""
    if odd := _irregular(folder):
        return f"{odd[0]}: is a link or no file"
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


def _irregular(path: Path) -> list[Path]:
    """Return what is neither a file nor a folder, or is a link, of a path and what it holds."""
    inner = [] if path.is_symlink() or not path.is_dir() else sorted(path.rglob("*"))
    return [each for each in (path, *inner) if os.path.lexists(each) and not _is_plain(each)]


def _is_plain(path: Path) -> bool:
    return not path.is_symlink() and (path.is_file() or path.is_dir())


def renamed(record: Record, model: str) -> Record:
    """A stage's record as this study would have it, where the other calls the model otherwise."""
    node = record["node"]
    if node["kind"] != "stage" or node["model"] == model:
        return record
    note = f"merged: the model was called {node['model']}"
    provenance = record["provenance"] | {"notes": [*record["provenance"]["notes"], note]}
    return {**record, "node": node | {"model": model}, "provenance": provenance}
