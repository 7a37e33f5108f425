"""Detection of damaged node folders, and setting damaged files aside.

A record is damaged if it fails a check in ``records`` or belongs to another node. It is also
damaged if a file that it names is missing or changed: rows, weights, classifiers, Arrow files.
Plan, status, pilot, merge, the trainer and Snakemake all use this module, so that they agree.

Rows are read in full. Artefacts may be large, so their sizes are compared. Their content is
compared only if a file is newer than its record, or changed since it was last found valid. Code
that reads an artefact checks all of it (``artefacts``).
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypedDict

from tasktransfer.core.nodes import Evaluation, Node, Stage
from tasktransfer.errors import RecordError
from tasktransfer.files import json_text, replace_file
from tasktransfer.files.untrusted import read_regular
from tasktransfer.results import artefacts
from tasktransfer.results.records import list_selections, parse_record, read_record
from tasktransfer.results.schema import Record
from tasktransfer.results.state import RECORD, ROWS

CHECK_VERSION = 3
"""Version of the checks; increase it when they change, and everything is checked again."""

_NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)

Signature = dict[str, list[int]]
"""File → size, inode, mtime and ctime in nanoseconds.

The kernel sets the ctime, so it also changes if a file is rewritten and its mtime restored.
"""


class ValidFolder(TypedDict):
    """State of a folder that was found valid.

    ``selections`` lists the selecting tasks of each best round that a training has kept.
    """

    files: Signature
    selections: list[list[str]]


Artefacts = Literal["none", "young", "all"]
"""Artefacts whose content is compared: none (nor sizes), those newer than their record, or all."""


def find_damage(folder: Path, digest: str, content: Artefacts = "young") -> str | None:
    """Describe in a sentence the damage to a node's record, rows or artefacts, if there is any.

    Return None if they are valid, or if there is no record.

    Args:
        folder: the node's folder.
        digest: digest of the node that belongs there, or a prefix of it.
        content: see ``Artefacts``.

    Raises:
        RecordError: a file exists but cannot be read, so its state cannot be determined.
    """
    return inspect_record(folder, digest, content)[0]


def inspect_record(
    folder: Path, digest: str, content: Artefacts = "young"
) -> tuple[str | None, Record | None]:
    """Describe the damage to a node's files, and return it together with the record.

    The record is None if it is missing or not valid. It is returned if only other files are
    damaged.
    """
    file = folder / RECORD
    if not os.path.lexists(file):
        return None, None
    try:
        record = parse_record(file, _read_content(file))
    except FileNotFoundError:
        return f"{file}: This is a link to a missing file", None
    except _NO_FILE:
        return f"{file}: This is not a regular file", None
    except RecordError as error:
        return str(error), None
    return _find_folder_contradiction(folder, record, digest, content), record


def _find_folder_contradiction(
    folder: Path, record: Record, digest: str, content: Artefacts
) -> str | None:
    """Describe how a valid record contradicts its folder, or return None if they agree."""
    file = folder / RECORD
    recorded, named = record["node"]["digest"], record["rows"]
    if not recorded.startswith(digest):
        return f"{file}: node.digest: The value is {recorded[:12]}, expected {digest[:12]}"
    if named is None and record["results"]:
        return f"{file}: rows: The value is null, although the record has results"
    if named is not None and named["file"] != ROWS:
        return f"{file}: rows.file: The value is {named['file']}, expected {ROWS}"
    lost = _find_rows_problem(folder / named["file"], named) if named else None
    return lost or _find_artefact_problem(folder, record, content)


def _find_artefact_problem(folder: Path, record: Record, content: Artefacts) -> str | None:
    if content == "none":
        return None
    return artefacts.find_artefact_problem(
        folder, record.get("artefacts", {}), every=content == "all"
    )


def _find_rows_problem(file: Path, named: Mapping[str, Any]) -> str | None:
    """Describe how a rows file differs from its record, or return None if they agree."""
    try:
        content = _read_content(file)
    except _NO_FILE:
        return f"{file}: The file is missing, but the record beside it lists it"
    if hashlib.sha256(content).hexdigest() != named["sha256"]:
        return f"{file}: The SHA-256 of the file does not match the record in the same folder"
    return None


def _read_content(file: Path) -> bytes:
    try:
        return read_regular(file)
    except _NO_FILE:
        raise
    except OSError as error:
        raise RecordError(
            f"{file}: The file cannot be read ({error.strerror}), so the state of its node is "
            "unknown. Make the file readable, or move it away to compute its node again."
        ) from error


def set_files_aside(folder: Path, which: Sequence[str] = (RECORD, ROWS)) -> list[Path]:
    """Rename a damaged record and its rows, or the files in ``which``, to ``<name>.damaged-<n>``.

    n is the first number for which both names are free or have the same content, because Snakemake
    restores outputs when a training fails. The caller must hold the node's claim.

    Returns:
        The new paths.
    """
    names = [name for name in which if os.path.lexists(folder / name)]
    number = 1
    while any(
        _is_different_file(folder / name, folder / f"{name}.damaged-{number}") for name in names
    ):
        number += 1
    # The record comes first: a node without a record never counts as finished.
    return [(folder / name).rename(folder / f"{name}.damaged-{number}") for name in names]


def _is_different_file(file: Path, kept: Path) -> bool:
    """Return whether ``kept`` exists with a content other than ``file``."""
    if not os.path.lexists(kept):
        return False
    return not (file.is_file() and kept.is_file() and filecmp.cmp(file, kept, shallow=False))


class ValidFolderCache:
    """Cache of valid folders, so that thousands of records are not read at every start.

    A changed file has a new signature and is checked again.

    Args:
        results: absolute path of the results folder.
    """

    def __init__(self, results: Path) -> None:
        self._file = results / "stages" / ".checked.json"
        self._right: dict[str, ValidFolder] = self._read()
        self._new: dict[str, ValidFolder] = {}

    def find_damage(self, node: Node, folder: str) -> str | None:
        """Describe the damage in a node's folder, from the cache if possible."""
        return self.inspect_folder(node, folder)[0]

    def inspect_folder(self, node: Node, folder: str) -> tuple[str | None, Record | None]:
        """Return a folder's damage (``find_damage``), and the record if it was read."""
        if not isinstance(node, Stage | Evaluation):
            # Fits and derived data are few, and have more files than a signature covers.
            return inspect_record(Path(folder), node.digest)
        path = node.path
        before = self._right.get(path)
        if before is not None and _read_signature(folder, before["files"]) == before["files"]:
            return None, None
        # Taken before reading, so that a change during the read is noticed next time.
        signature = _read_signature(folder, _list_recorded_names(folder))
        # If a valid file was replaced, its mtime cannot be trusted, so all content is compared.
        content: Artefacts = "young" if before is None else "all"
        problem, record = inspect_record(Path(folder), node.digest, content)
        if problem is None and signature is not None:
            right: ValidFolder = {"files": signature, "selections": _read_selections(folder, node)}
            self._right[path] = self._new[path] = right
        return problem, record

    def list_selections(self, stage: Stage, folder: str) -> set[tuple[str, ...]]:
        """Return the tasks of each selection of a training whose record is valid."""
        right = self._right.get(stage.path)
        recorded = right["selections"] if right else _read_selections(folder, stage)
        return {tuple(tasks) for tasks in recorded}

    def save(self) -> None:
        """Save the folders that were found valid. If saving fails, they are checked again."""
        if not self._new:
            return
        right = {**self._read(), **self._new}
        with suppress(OSError), replace_file(self._file) as part:
            part.write_text(json.dumps({"version": CHECK_VERSION, "right": right}))
            self._new = {}

    def _read(self) -> dict[str, ValidFolder]:
        try:
            value = json_text.loads(self._file.read_bytes())
            return dict(value["right"]) if value["version"] == CHECK_VERSION else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}


@cache
def get_valid_folder_cache(results: str, here: str) -> ValidFolderCache:
    """Return the cache of a results folder, which is shared within the process.

    Args:
        here: the working directory, to which ``results`` is relative.
    """
    return ValidFolderCache(Path(here, results))


def _read_signature(folder: str, names: Iterable[str]) -> Signature | None:
    """Return a signature of a record and of the files beside it, to detect changes.

    Return None if there is no record.
    """
    signature: Signature = {}
    for name in dict.fromkeys((RECORD, *names)):
        try:
            seen = os.stat(f"{folder}/{name}")  # noqa: PTH116  # thousands of times
        except OSError:
            if name == RECORD:
                return None
            continue
        signature[name] = [seen.st_size, seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns]
    return signature


def _read_selections(folder: str, node: Node) -> list[list[str]]:
    if not isinstance(node, Stage):
        return []
    return [list(tasks) for tasks in list_selections(read_record(Path(folder, RECORD)))]


def _list_recorded_names(folder: str) -> list[str]:
    """Return the names of a node's rows file and of the artefacts in its record."""
    return [ROWS, *(json_text.read_object(Path(folder, RECORD)).get("artefacts") or ())]
