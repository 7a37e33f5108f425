"""The files of a submission, read into memory from an untrusted zip or folder.

What makes a zip unsafe is ``data.safe_zip``'s to say; a folder is read within the same limits.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tasktransfer.designs.transfer.challenge.findings import Findings, excerpt
from tasktransfer.designs.transfer.challenge.format import FILES
from tasktransfer.safe_zip import CHUNK_BYTES, Budget, Limits, UnsafeZipError, check_zip, reason

MAX_ARCHIVE_BYTES = 64 * 2**20
"""Largest zip that is opened; the toolkit's example of a whole submission has 0.2 MiB."""
MAX_FILE_BYTES = 64 * 2**20
"""Most bytes that one file may hold once unpacked."""
MAX_TOTAL_BYTES = 256 * 2**20
"""Most bytes that all files together may hold once unpacked."""
MAX_MEMBERS = 1000
"""Most files and folders; a submission has 30 at most."""
MAX_DEPTH = 8
"""How deep a folder is looked into."""

_JUNK_NAMES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
_JUNK_FOLDERS = frozenset({"__MACOSX"})


@dataclass(frozen=True, slots=True)
class Members:
    """``names``: every file, as a path with slashes, junk left out, in the archive's order.
    ``contents``: the bytes of those called like a prediction file, if they could be read.
    ``is_folder``: a folder was read, and no zip."""

    names: list[str] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)
    is_folder: bool = False


def read_members(path: Path, findings: Findings) -> Members:
    """The files of the submission at ``path``; whatever is wrong goes to ``findings``."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except (OSError, ValueError) as error:
        findings.error("", None, "unreadable", f"cannot be opened ({reason(error)})")
        return Members()
    if kind == stat.S_IFDIR:
        return _read_folder(path, findings)
    if kind != stat.S_IFREG:
        findings.error("", None, "not-a-zip", "is neither a zip nor a folder")
        return Members()
    return _read_zip(path, findings)


def _wanted(name: str) -> bool:
    return posixpath.basename(name) in FILES and "/" in name


def _is_junk(name: str) -> bool:
    parts = name.split("/")
    return bool(
        _JUNK_FOLDERS & set(parts) or parts[-1] in _JUNK_NAMES or parts[-1].startswith("._")
    )


def _warn_of_junk(names: list[str], findings: Findings) -> None:
    if names:
        findings.warn(
            "",
            None,
            "junk",
            f"{len(names)} files of the operating system are left aside, the first is "
            f"{excerpt(names[0])}; leave them out of the archive",
        )


def _limits() -> Limits:
    return Limits(MAX_TOTAL_BYTES, MAX_FILE_BYTES, MAX_ARCHIVE_BYTES, MAX_MEMBERS)


def _content(name: str, chunks: Iterator[bytes], findings: Findings) -> bytes | None:
    """All chunks as one; None, and an error, if the file ``name`` is damaged or too large."""
    try:
        return b"".join(chunks)
    except UnsafeZipError as error:
        findings.error(name, None, error.flaw.kind, error.flaw.text)
        return None


# --- zip -----------------------------------------------------------------------------------------


def _read_zip(path: Path, findings: Findings) -> Members:
    members = Members()
    packed = check_zip(path, _limits())
    for flaw in packed.flaws:
        findings.error(flaw.member, None, flaw.kind, flaw.text)
    _warn_of_junk([name for name in packed.members if _is_junk(name)], findings)
    for name in packed.members:
        if _is_junk(name):
            continue
        members.names.append(name)
        data = _content(name, packed.chunks(name), findings) if _wanted(name) else None
        if data is not None:
            members.contents[name] = data
    return members


# --- folder --------------------------------------------------------------------------------------


def _read_folder(path: Path, findings: Findings) -> Members:
    members = Members(is_folder=True)
    budget = Budget(_limits())
    junk: list[str] = []
    for number, (name, entry) in enumerate(_walk(path, "", findings)):
        if number >= MAX_MEMBERS:
            findings.error(
                "", None, "too-many-members", f"has more than {MAX_MEMBERS:,} files and folders"
            )
            break
        if _is_junk(name):
            junk.append(name)
        elif entry.is_symlink():
            findings.error(name, None, "link", "is a symbolic link; put the file itself there")
        elif entry.is_dir():
            continue
        elif not entry.is_file():
            findings.error(name, None, "not-a-file", "is not a regular file")
        else:
            members.names.append(name)
            data = _load(Path(entry.path), name, budget, findings) if _wanted(name) else None
            if data is not None:
                members.contents[name] = data
    _warn_of_junk(junk, findings)
    return members


def _walk(folder: Path, above: str, findings: Findings) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Path from the top and entry of everything below ``folder``; links are not followed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        findings.error(above, None, "unreadable", f"cannot be listed ({reason(error)})")
        return
    for entry in entries:
        name = posixpath.join(above, entry.name)
        yield name, entry
        if entry.is_dir(follow_symlinks=False) and name.count("/") < MAX_DEPTH:
            yield from _walk(Path(entry.path), name, findings)


def _load(file: Path, name: str, budget: Budget, findings: Findings) -> bytes | None:
    try:
        with file.open("rb") as stream:
            chunks = iter(lambda: stream.read(CHUNK_BYTES), b"")
            return _content(name, budget.counted(name, chunks), findings)
    except OSError as error:
        findings.error(name, None, "unreadable", f"cannot be read ({reason(error)})")
        return None
