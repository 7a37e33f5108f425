"""The files of a submission, read into memory from a zip or a folder that nobody vouches for.

Nothing is ever written to disk, so no path in a zip can lead anywhere; paths that try are refused
all the same, because other tools would follow them. Sizes are limited as declared and again as
read, so that a zip bomb costs no more than the limits allow.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tasktransfer.challenge.findings import Findings, excerpt
from tasktransfer.challenge.format import FILES

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
CHUNK_BYTES = 2**20

_JUNK_NAMES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
_JUNK_FOLDERS = frozenset({"__MACOSX"})
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


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
        findings.error("", None, "unreadable", f"cannot be opened ({_reason(error)})")
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


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


class _Budget:
    """Counts the bytes really read, over all files of one submission."""

    def __init__(self) -> None:
        self.total = 0

    def read(self, name: str, chunks: Iterator[bytes], findings: Findings) -> bytes | None:
        """All chunks as one; None, and an error, once they are more than the limits allow."""
        kept: list[bytes] = []
        size = 0
        for chunk in chunks:
            size += len(chunk)
            self.total += len(chunk)
            if size > MAX_FILE_BYTES or self.total > MAX_TOTAL_BYTES:
                _too_large(name, findings)
                return None
            kept.append(chunk)
        return b"".join(kept)


def _too_large(name: str, findings: Findings) -> None:
    findings.error(
        name,
        None,
        "too-large",
        f"unpacks to more than is read of a submission ({MAX_FILE_BYTES // 2**20} MiB a file, "
        f"{MAX_TOTAL_BYTES // 2**20} MiB in all)",
    )


# --- zip -----------------------------------------------------------------------------------------


def _read_zip(path: Path, findings: Findings) -> Members:
    members = Members()
    try:
        size = path.stat().st_size
        if size == 0:
            findings.error("", None, "empty-archive", "is empty (0 bytes)")
            return members
        if size > MAX_ARCHIVE_BYTES:
            findings.error(
                "",
                None,
                "too-large",
                f"is {size:,} bytes; a zip of more than {MAX_ARCHIVE_BYTES:,} is not opened",
            )
            return members
        with zipfile.ZipFile(path) as archive:
            _read_infos(archive, members, findings)
    except Exception as error:
        # zipfile raises errors of a dozen classes on bytes that it was not made for (BadZipFile,
        # struct.error, ValueError, NotImplementedError, OSError, ...): all mean the same here.
        findings.error(
            "", None, "not-a-zip", f"cannot be read as a zip ({_reason(error)}); pack it again"
        )
    return members


def _read_infos(archive: zipfile.ZipFile, members: Members, findings: Findings) -> None:
    infos = archive.infolist()
    if len(infos) > MAX_MEMBERS:
        findings.error(
            "", None, "too-many-members", f"has {len(infos):,} members; at most {MAX_MEMBERS:,}"
        )
        return
    if not infos:
        findings.error("", None, "empty-archive", "is a zip without any file")
    kept = _sound(infos, findings)
    if sum(info.file_size for info in kept.values()) > MAX_TOTAL_BYTES:
        _too_large("", findings)
        return
    budget = _Budget()
    for name, info in kept.items():
        members.names.append(name)
        data = _unpack(archive, name, info, budget, findings) if _wanted(name) else None
        if data is not None:
            members.contents[name] = data


def _sound(infos: list[zipfile.ZipInfo], findings: Findings) -> dict[str, zipfile.ZipInfo]:
    """The members that may be read, by their plain path; the others are noted as errors."""
    kept: dict[str, zipfile.ZipInfo] = {}
    junk: list[str] = []
    for info in infos:
        trick = _trick(info)
        name = posixpath.normpath(info.filename)
        if trick is not None:
            findings.error(info.orig_filename, None, *trick)
        elif _is_junk(name):
            junk.append(name)
        elif info.is_dir():
            continue
        elif name in kept:
            findings.error(name, None, "duplicate-member", "is in the zip more than once")
        else:
            kept[name] = info
    _warn_of_junk(junk, findings)
    return kept


def _trick(info: zipfile.ZipInfo) -> tuple[str, str] | None:
    """Kind and text of what is unsafe about a member, if anything is."""
    name = info.orig_filename
    kind = stat.S_IFMT(info.external_attr >> 16)
    if "\\" in name:
        return "unsafe-path", "has a backslash in its path; part folders by /"
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return "unsafe-path", "has an absolute path; paths start at the top of the zip"
    if ".." in name.split("/"):
        return "unsafe-path", "has a path that leads upwards (..); paths stay inside the zip"
    if not name.isprintable() or not name.strip("./ "):
        return "unsafe-path", "has a path that is empty or holds control characters"
    if kind == stat.S_IFLNK:
        return "link", "is a symbolic link; pack the file itself"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "not-a-file", "is not a regular file"
    if info.flag_bits & 0x1:
        return "encrypted", "is encrypted; pack it without a password"
    if info.compress_type not in _METHODS:
        return "compression", "is packed by another method than deflate; use plain zip"
    if info.file_size > MAX_FILE_BYTES:
        return (
            "too-large",
            f"claims {info.file_size:,} bytes; at most {MAX_FILE_BYTES:,} are read of a file",
        )
    return None


def _unpack(
    archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo, budget: _Budget, findings: Findings
) -> bytes | None:
    try:
        with archive.open(info) as stream:
            return budget.read(name, iter(lambda: stream.read(CHUNK_BYTES), b""), findings)
    except Exception as error:
        # As in _read_zip: a damaged member fails in many ways.
        findings.error(
            name, None, "damaged", f"is damaged in the zip ({_reason(error)}); pack it again"
        )
        return None


# --- folder --------------------------------------------------------------------------------------


def _read_folder(path: Path, findings: Findings) -> Members:
    members = Members(is_folder=True)
    budget = _Budget()
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
        findings.error(above, None, "unreadable", f"cannot be listed ({_reason(error)})")
        return
    for entry in entries:
        name = posixpath.join(above, entry.name)
        yield name, entry
        if entry.is_dir(follow_symlinks=False) and name.count("/") < MAX_DEPTH:
            yield from _walk(Path(entry.path), name, findings)


def _load(file: Path, name: str, budget: _Budget, findings: Findings) -> bytes | None:
    try:
        with file.open("rb") as stream:
            return budget.read(name, iter(lambda: stream.read(CHUNK_BYTES), b""), findings)
    except OSError as error:
        findings.error(name, None, "unreadable", f"cannot be read ({_reason(error)})")
        return None
