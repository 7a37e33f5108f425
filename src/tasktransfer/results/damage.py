"""What is wrong with what a job left in its node's folder, and setting it aside.

A record is damaged if it fails a check of ``records``, is of another node than belongs there, or
if what it names beside it is not there or another: rows, weights, classifiers, Arrow files. Whoever
asks whether a node is finished asks here, so that plan, status, pilot, merge, the trainer and
Snakemake agree.

Rows are read in full. Of artefacts, which may be large, sizes are looked at, and
the content where a file is younger than its record, or was changed since it was last found right.
Whoever reads an artefact checks all of it (``artefacts``).
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
from tasktransfer.files import json_text, replacing
from tasktransfer.files.regular import read_regular
from tasktransfer.results import artefacts
from tasktransfer.results.records import parse_record, read_record, selected_on
from tasktransfer.results.schema import Record
from tasktransfer.results.state import OLD_ROWS, RECORD, ROWS

CHECK_VERSION = 3
"""Raise this when the checks change: everything is checked again then."""

_NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)

Signature = dict[str, list[int]]
"""File → its size, inode, and times of change. The last time is the kernel's own: whoever writes
into a file and sets its time back changes it."""


class Right(TypedDict):
    """What was seen of a folder in which nothing is wrong; ``selections``: the selecting tasks of
    each best round that a training has left."""

    files: Signature
    selections: list[list[str]]


Artefacts = Literal["none", "young", "all"]
"""Of which artefacts the content is compared: of none, and sizes neither; of those that are younger
than their record; of all."""


def damage(folder: Path, digest: str, content: Artefacts = "young") -> str | None:
    """What is wrong with the record of a node, its rows and what others read of it; None if nothing
    is, or if there is no record.

    Args:
        folder: the node's folder.
        digest: of the node that belongs there, or what it begins with.
        content: see ``Artefacts``.

    Raises:
        RecordError: a file is there and cannot be read, so that it cannot be told.
    """
    return examined(folder, digest, content)[0]


def examined(
    folder: Path, digest: str, content: Artefacts = "young"
) -> tuple[str | None, Record | None]:
    """``damage``, and the record that was read for it, if there is one."""
    file = folder / RECORD
    if not os.path.lexists(file):
        return None, None
    try:
        record = parse_record(file, _content(file))
    except FileNotFoundError:
        return f"{file}: a link to a file that is not there", None
    except _NO_FILE:
        return f"{file}: not a file", None
    except RecordError as error:
        return str(error), None
    return _contradicts_folder(folder, record, digest, content), record


def _contradicts_folder(
    folder: Path, record: Record, digest: str, content: Artefacts
) -> str | None:
    """What of a record is not of its folder, and what it names is not there or another."""
    file = folder / RECORD
    recorded, named = record["node"]["digest"], record["rows"]
    if not recorded.startswith(digest):
        return f"{file}: node.digest: {recorded[:12]}, expected {digest[:12]}"
    if named is None and record["results"]:
        return f"{file}: rows: names no file of rows"
    if named is not None and named["file"] not in (ROWS, OLD_ROWS):
        return f"{file}: rows.file: found {named['file']}, expected {ROWS}"
    lost = _lost(folder / named["file"], named) if named else None
    return lost or _other_artefact(folder, record, content)


def _other_artefact(folder: Path, record: Record, content: Artefacts) -> str | None:
    if content == "none":
        return None
    return artefacts.problem(folder, record.get("artefacts", {}), every=content == "all")


def _lost(file: Path, named: Mapping[str, Any]) -> str | None:
    """How rows differ from what their record says of them."""
    try:
        content = _content(file)
    except _NO_FILE:
        return f"{file}: no such file, its record names it"
    if hashlib.sha256(content).hexdigest() != named["sha256"]:
        return f"{file}: its SHA-256 is not the one in the record beside it"
    return None


def _content(file: Path) -> bytes:
    try:
        return read_regular(file)
    except _NO_FILE:
        raise
    except OSError as error:
        raise RecordError(
            f"{file}: cannot be read ({error.strerror}), so it cannot be told whether its node is "
            "finished; make it readable, or move it away to have its node made again"
        ) from error


def set_aside(folder: Path, which: Sequence[str] = (RECORD, ROWS, OLD_ROWS)) -> list[Path]:
    """Rename a damaged record and its rows to ``<name>.damaged-<n>``, n the first number
    that is free for both, or has the same content: Snakemake puts outputs back where a training
    fails. To be called by whoever holds the node's claim.

    Returns:
        Where they are now.
    """
    names = [name for name in which if os.path.lexists(folder / name)]
    number = 1
    while any(_differs(folder / name, folder / f"{name}.damaged-{number}") for name in names):
        number += 1
    # The record first: without it nothing looks finished.
    return [(folder / name).rename(folder / f"{name}.damaged-{number}") for name in names]


def _differs(file: Path, kept: Path) -> bool:
    """Whether something else than a file is kept under a name already."""
    if not os.path.lexists(kept):
        return False
    return not (file.is_file() and kept.is_file() and filecmp.cmp(file, kept, shallow=False))


class Checked:
    """Which folders were found right, so that thousands of records are read once and not at every
    start. What changes a file changes its signature, and it is checked again.

    Args:
        results: the results folder, as an absolute path.
    """

    def __init__(self, results: Path) -> None:
        self._file = results / "stages" / ".checked.json"
        self._right: dict[str, Right] = self._read()
        self._new: dict[str, Right] = {}

    def damage(self, node: Node, folder: str) -> str | None:
        """``damage`` of what is in a node's folder."""
        return self.examined(node, folder)[0]

    def examined(self, node: Node, folder: str) -> tuple[str | None, Record | None]:
        """``damage``, and the record if it was read for it: what was right before is not."""
        if not isinstance(node, Stage | Evaluation):
            # Few, and made of more files than a signature tells of.
            return examined(Path(folder), node.digest)
        path = node.path
        before = self._right.get(path)
        if before is not None and _signature(folder, before["files"]) == before["files"]:
            return None, None
        # Looked at before it is read: what changes meanwhile is not taken for what was read.
        signature = _signature(folder, _named_in(folder))
        # A file that was right once, and is another now, may say any time.
        content: Artefacts = "young" if before is None else "all"
        problem, record = examined(Path(folder), node.digest, content)
        if problem is None and signature is not None:
            right: Right = {"files": signature, "selections": _selections_in(folder, node)}
            self._right[path] = self._new[path] = right
        return problem, record

    def selections(self, stage: Stage, folder: str) -> set[tuple[str, ...]]:
        """The tasks of each selection of a training whose record is right."""
        right = self._right.get(stage.path)
        recorded = right["selections"] if right else _selections_in(folder, stage)
        return {tuple(tasks) for tasks in recorded}

    def save(self) -> None:
        """Keep what was found right since the last time; where that cannot be written, the next
        start checks again."""
        if not self._new:
            return
        right = {**self._read(), **self._new}
        with suppress(OSError), replacing(self._file) as part:
            part.write_text(json.dumps({"version": CHECK_VERSION, "right": right}))
            self._new = {}

    def _read(self) -> dict[str, Right]:
        try:
            value = json_text.loads(self._file.read_bytes())
            return dict(value["right"]) if value["version"] == CHECK_VERSION else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}


@cache
def checked(results: str, here: str) -> Checked:
    """What is known of a results folder, once a process and working directory (``here``)."""
    return Checked(Path(here, results))


def _signature(folder: str, names: Iterable[str]) -> Signature | None:
    """Of a record and files beside it, those left out that are not there; None: there is no
    record."""
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


def _selections_in(folder: str, node: Node) -> list[list[str]]:
    if not isinstance(node, Stage):
        return []
    return [list(tasks) for tasks in selected_on(read_record(Path(folder, RECORD)))]


def _named_in(folder: str) -> list[str]:
    """The files that a record names, if there is one that can be read."""
    return [ROWS, OLD_ROWS, *(json_text.read_object(Path(folder, RECORD)).get("artefacts") or ())]
