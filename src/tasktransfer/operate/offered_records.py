"""Checks of the records in another results folder before they are copied."""

from __future__ import annotations

import os
from pathlib import Path

from tasktransfer.core.nodes import Node, Stage
from tasktransfer.errors import RecordError
from tasktransfer.files.json_text import read_tensor_shapes
from tasktransfer.results.artefacts import check_artefacts as checked_artefacts
from tasktransfer.results.damage import Artefacts, find_damage
from tasktransfer.results.node_folders import NodeFolder, compute_node_path
from tasktransfer.results.records import (
    describe_unrecorded_selections,
    list_parts,
    list_written_parts,
    read_record,
)
from tasktransfer.results.rounds import CHECKPOINT, ROUNDS
from tasktransfer.results.rows import read_node_digest, read_rows
from tasktransfer.results.schema import Record
from tasktransfer.results.state import RECORD

PARAMETERS = (CHECKPOINT, ROUNDS)
"""Folders of a stage's parameters, from which other nodes start; not part of its record."""


def read_offered_record(node_folder: NodeFolder, node: Node | None) -> Record:
    """Read and check the record that another results folder offers.

    Args:
        node: the planned node; None to accept any node.

    Raises:
        RecordError: the record is damaged, has another schema or digest, is in the wrong folder, or
            does not match the planned node.
    """
    file = node_folder.folder / RECORD
    record = read_record(file)
    try:
        path, _ = compute_node_path(record), list_parts(record)
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordError(
            f"{file}: The value of node.identity does not describe a node ({error!r})"
        ) from error
    digest, problem = record["node"]["digest"], None
    if path != node_folder.path:
        problem = f"The record belongs in {path}, but it is in {node_folder.path}"
    elif node is not None and digest != node.digest:
        problem = f"The digest is {digest}, expected {node.digest}"
    elif isinstance(node, Stage):
        untested = [task for task in node.tested if task not in record["results"]]
        problem = describe_unrecorded_selections(node, record)
        if problem is None and untested:
            tasks = ", ".join(record["results"]) or "no task"
            problem = f"results: {tasks}, expected {', '.join(node.tested)}"
    if problem:
        raise RecordError(f"{file}: {problem}")
    return record


def check_files(node_folder: NodeFolder, record: Record) -> None:
    """Check that the files listed in a record exist, are valid, and belong to its node.

    Raises:
        RecordError: a file is missing, damaged, a link, or not the file that the record describes.
    """
    # A stage's weights are optional, and checked in ``find_parameters_problem``.
    content: Artefacts = "none" if node_folder.is_stage else "all"
    digest, rows = record["node"]["digest"], record["rows"]
    problem = find_damage(node_folder.folder, digest, content)
    files = [rows["file"]] if rows else []
    parts = (*files, *list_written_parts(record["node"], record["sizes"]))
    odd = [file for part in parts for file in _list_irregular_paths(node_folder.folder / part)]
    if problem or odd:
        raise RecordError(
            problem or f"{odd[0]}: This is not a regular file. Put the file itself there."
        )
    if rows is not None:
        file = node_folder.folder / rows["file"]
        maker = read_node_digest(read_rows(file, rows))
        if maker != digest:
            raise RecordError(
                f"{file}: The file belongs to node {maker or '?'}, but its record belongs to "
                f"{digest}"
            )


def find_parameters_problem(folder: Path, digest: str) -> str | None:
    """Describe the problem with a stage's folder of parameters, or return None."""
    if odd := _list_irregular_paths(folder):
        return f"{odd[0]}: This is not a regular file"
    if not folder.is_dir():
        return None
    weights = sorted(folder.rglob("*.safetensors"))
    if not weights:
        return f"{folder}: The folder contains no *.safetensors"
    cut = [file for file in weights if read_tensor_shapes(file) is None]
    if cut:
        return f"{cut[0]}: The file is damaged or truncated"
    try:
        checked_artefacts(folder.parent, digest, [folder.name])
    except RecordError as error:
        return str(error)
    return None


def _list_irregular_paths(path: Path) -> list[Path]:
    """Return all links and special files at or below a path."""
    inner = [] if path.is_symlink() or not path.is_dir() else sorted(path.rglob("*"))
    return [p for p in (path, *inner) if os.path.lexists(p) and not _is_plain(p)]


def _is_plain(path: Path) -> bool:
    return not path.is_symlink() and (path.is_file() or path.is_dir())


def rename_model(record: Record, model: str) -> Record:
    """Return a stage's record with this study's name for the model."""
    node = record["node"]
    if node["kind"] != "stage" or node["model"] == model:
        return record
    note = f"merged: the model was called {node['model']}"
    provenance = record["provenance"] | {"notes": [*record["provenance"]["notes"], note]}
    return {**record, "node": node | {"model": model}, "provenance": provenance}
