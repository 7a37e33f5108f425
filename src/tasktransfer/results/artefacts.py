"""Checksums of the files that other nodes read: kept weights, fits, derived tables.

A node's record lists every such file with its size and SHA-256. A reader first checks the whole
file (``check_artefacts``, ``rounds.check_round_folder``). Code that only asks whether the node is
finished compares sizes, and checks the content of files that are newer than the record
(``find_artefact_problem``). Old records have no checksums, so their files are read unchecked.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from tasktransfer.errors import RecordError
from tasktransfer.files import compute_sha256, json_text
from tasktransfer.results.state import RECORD

FileName = Annotated[str, Field(pattern=r"^[^/.][^/]*(/[^/.][^/]*)*$")]
"""A path below the node's folder, without ``..`` and hidden files."""


class Artefact(TypedDict):
    """A file as its node wrote it."""

    bytes: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


Artefacts = Mapping[str, Artefact]


def compute_checksums(folder: Path, parts: Iterable[str]) -> dict[str, Artefact]:
    """Return the size and SHA-256 of every file in given parts of a node's folder.

    A part is a file or a folder. Keys are paths relative to the node's folder. Missing parts and
    hidden files are left out.
    """
    names = sorted(name for part in parts for name in _list_files(folder, part))
    return {
        name: {"bytes": (folder / name).stat().st_size, "sha256": compute_sha256(folder / name)}
        for name in names
    }


def find_artefact_problem(folder: Path, artefacts: Artefacts, *, every: bool = False) -> str | None:
    """Describe how the files in a node's folder differ from its record, or return None.

    A folder without any of its files is not a difference: weights, fits and derived data may be
    deleted when nothing needs them, and a packed study has none. Sizes are always compared. Content
    is compared for files newer than the record, which is written last.

    Args:
        every: compare the content of every file.
    """
    written = _read_modification_time(folder / RECORD)
    kept = {Path(name).parent for name in artefacts if os.path.lexists(folder / name)}
    for name, recorded in artefacts.items():
        file = folder / name
        try:
            seen, bytes_then = file.stat(), recorded["bytes"]
            if seen.st_size != bytes_then:
                return (
                    f"{file}: The file has {seen.st_size:,} bytes, but the record of its node says "
                    f"{bytes_then:,}"
                )
            if (every or seen.st_mtime_ns > written) and compute_sha256(file) != recorded["sha256"]:
                return f"{file}: The SHA-256 of the file does not match the record of its node"
        except (FileNotFoundError, NotADirectoryError):
            if Path(name).parent in kept:
                return f"{file}: The file is missing, but the record of its node lists it"
        except OSError as error:
            return f"{file}: The file cannot be read ({error.strerror})"
    return None


def check_artefacts(folder: Path, digest: str, parts: Iterable[str]) -> None:
    """Raise an error if files in given parts of a node's folder differ from its record.

    Nothing is checked if there is no record. Old records have no checksums, so only the digest of
    their node is compared.

    Args:
        digest: digest of the node that belongs there.
        parts: files or folders in it.

    Raises:
        RecordError: the record belongs to another node, or a file is missing, unexpected or
            changed. The message names the file and the remedy.
    """
    in_record = _read_digest_and_artefacts(folder / RECORD)
    if in_record is None:
        return
    recorded = in_record[0]
    if recorded != digest:
        raise RecordError(
            _describe_damage(
                folder, f"The record belongs to node {recorded[:12]}, expected {digest[:12]}"
            )
        )
    if in_record[1] is None:
        return
    wanted = [part.rstrip("/") for part in parts]
    of_parts = {
        name: artefact
        for name, artefact in in_record[1].items()
        if any(name == part or name.startswith(f"{part}/") for part in wanted)
    }
    found = find_artefact_problem(folder, of_parts, every=True)
    if found is None:
        more = sorted({n for part in wanted for n in _list_files(folder, part)} - of_parts.keys())
        found = (
            f"{folder / more[0]}: The record of its node does not list this file" if more else None
        )
    if found is not None:
        raise RecordError(_describe_damage(folder, found))


def _list_files(folder: Path, part: str) -> list[str]:
    path = folder / part
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    names = [file.relative_to(folder) for file in files if file.is_file()]
    return [n.as_posix() for n in names if not any(p.startswith(".") for p in n.parts)]


def _read_modification_time(record: Path) -> int:
    try:
        return os.stat(record).st_mtime_ns  # noqa: PTH116  # for thousands of nodes
    except OSError:
        return 0


def _read_digest_and_artefacts(file: Path) -> tuple[str, dict[str, Any] | None] | None:
    """Read the digest and the artefacts in a record, or return None without a record.

    ``find_damage`` checks whether the record itself is valid.
    """
    try:
        record = json_text.read(file)
        return str(record["node"]["digest"]), record.get("artefacts")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(
            _describe_damage(file.parent, f"{file}: The file is not a record ({error})")
        ) from error


def _describe_damage(folder: Path, found: str) -> str:
    record = folder / RECORD
    if not found.startswith(str(folder)):
        found = f"{record}: {found}"
    return (
        f"{found}, because it was changed or damaged after it was written. Delete {record} and run "
        "the study with snakemake, which computes the node again."
    )
