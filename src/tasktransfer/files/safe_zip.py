"""Checks of untrusted zips, and access to the bytes of their valid members.

Releases (``datasets.feta.archive``) and submissions (``challenge.files``) use this module and raise
their own errors. Members are read in memory and never unpacked to disk, so a path cannot escape.
Unsafe paths are still refused, because other tools would follow them. Both declared sizes and sizes
as read are limited, so that a zip bomb costs no more than the limits allow. Standard library only,
because a release's revision is computed each time the workflow is parsed.
"""

from __future__ import annotations

import math
import posixpath
import re
import stat
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

CHUNK_BYTES = 2**20
RATIO_FREE_BYTES = 2**20
"""Maximum size of a member that is accepted with any compression ratio."""

_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_AGAIN = "Fetch or pack it again."
_LESS = "Pack only the files that belong there."


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on a zip.

    Attributes:
        total: bytes of all files, unpacked.
        file: bytes of one file, unpacked.
        archive: bytes of the zip.
        members: number of files and folders.
        ratio: unpacked bytes per compressed byte, in files of more than ``RATIO_FREE_BYTES``; None
            for no limit.
    """

    total: int
    file: float = math.inf
    archive: float = math.inf
    members: float = math.inf
    ratio: int | None = None


@dataclass(frozen=True, slots=True)
class Flaw:
    """A problem of a zip.

    Attributes:
        kind: kind of the problem, for reports.
        member: name of the member in the zip, empty for the zip itself.
        text: sentences about the problem and its remedy, which do not repeat the name.
    """

    kind: str
    member: str
    text: str


def describe_flaw(path: Path, flaw: Flaw) -> str:
    """Describe a zip's problem in an error message."""
    place = f"{path}, member {flaw.member!r}" if flaw.member else str(path)
    return f"{place}: {flaw.text}"


class UnsafeZipError(Exception):
    """A zip or one of its members is damaged or too large; see ``flaw``."""

    def __init__(self, kind: str, text: str, member: str = "") -> None:
        super().__init__(text)
        self.flaw = Flaw(kind, member, text)


class Budget:
    """A counter of the bytes that are read from all files of one zip or folder."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.total = 0

    def limit_chunks(self, name: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the chunks of the file ``name``. Raises UnsafeZipError beyond a limit."""
        size = 0
        for chunk in chunks:
            size += len(chunk)
            self.total += len(chunk)
            if self.total > self.limits.total or size > self.limits.file:
                raise UnsafeZipError("too-large", _describe_size_limit(self.limits), name)
            yield chunk


@dataclass(frozen=True, slots=True)
class SafeZip:
    """A checked zip.

    Attributes:
        members: valid files by normalised path, in the zip's order. Empty if the zip itself has a
            problem.
        flaws: problems of the zip or its members.
    """

    path: Path
    budget: Budget
    members: dict[str, zipfile.ZipInfo]
    flaws: list[Flaw]

    def read_chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a member. Raises UnsafeZipError if it is damaged or too large."""
        info, limits, read = self.members[name], self.budget.limits, 0
        for chunk in self.budget.limit_chunks(name, _unpack_member(self.path, name, info)):
            read += len(chunk)
            if limits.ratio and read > max(RATIO_FREE_BYTES, limits.ratio * info.compress_size):
                text = f"The file unpacks to more than {limits.ratio} times its packed size."
                text = f"{text} {_LESS}"
                raise UnsafeZipError("too-large", text, name)
            yield chunk
        if read != info.file_size:
            text = f"The file is damaged and ends after {read:,} of {info.file_size:,} bytes."
            text = f"{text} {_AGAIN}"
            raise UnsafeZipError("damaged", text, name)


def check_zip(path: Path, limits: Limits) -> SafeZip:
    """Check a zip file and the paths, kinds and declared sizes of its members.

    The problems are in ``SafeZip.flaws``.

    Raises:
        OSError: the file does not exist.
    """
    try:
        infos = _list_members(path, limits)
    except UnsafeZipError as error:
        return SafeZip(path, Budget(limits), {}, [error.flaw])
    members, flaws = _split_members(infos, limits)
    if sum(info.file_size for info in members.values()) > limits.total:
        members, flaws = {}, [*flaws, Flaw("too-large", "", _describe_size_limit(limits))]
    return SafeZip(path, Budget(limits), members, flaws)


def describe_error(error: Exception) -> str:
    """Return a short text of an error."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _list_members(path: Path, limits: Limits) -> list[zipfile.ZipInfo]:
    """Return all members. Raises UnsafeZipError if the zip itself is invalid."""
    size = path.stat().st_size
    if not size:
        text = f"The file is empty, so it cannot be read as a zip. {_AGAIN}"
        raise UnsafeZipError("empty-archive", text)
    if size > limits.archive:
        text = f"The zip has {size:,} bytes, but at most {limits.archive:,} are read. {_LESS}"
        raise UnsafeZipError("too-large", text)
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
    except Exception as error:
        # zipfile raises a dozen kinds of errors for damaged bytes (BadZipFile, struct.error,
        # ValueError, NotImplementedError, OSError, ...). They are treated alike here.
        text = f"The file cannot be read as a zip ({describe_error(error)}). {_AGAIN}"
        raise UnsafeZipError("not-a-zip", text) from error
    if not infos:
        raise UnsafeZipError("empty-archive", f"The zip contains no files. {_AGAIN}")
    if len(infos) > limits.members:
        text = f"The zip has {len(infos):,} members, but at most {limits.members:,} are read."
        text = f"{text} {_LESS}"
        raise UnsafeZipError("too-many-members", text)
    if sum(info.compress_size for info in infos) > size:
        # A false compressed size would defeat the limit on the ratio.
        raise UnsafeZipError(
            "damaged", f"The members of the zip claim more bytes than the zip has. {_AGAIN}"
        )
    return infos


def _split_members(
    infos: list[zipfile.ZipInfo], limits: Limits
) -> tuple[dict[str, zipfile.ZipInfo], list[Flaw]]:
    """Return the readable files by normalised path, and the problems of other members."""
    members: dict[str, zipfile.ZipInfo] = {}
    flaws = []
    for info in infos:
        name = posixpath.normpath(info.filename)
        trick = _find_flaw(info, limits)
        if trick is not None:
            kind, text = trick
            flaws.append(Flaw(kind, info.orig_filename, text))
        elif name in members:
            text = "The file is in the zip more than once. Keep one of them."
            flaws.append(Flaw("duplicate-member", name, text))
        elif not info.filename.endswith("/"):
            members[name] = info
    return members, flaws


def _find_flaw(info: zipfile.ZipInfo, limits: Limits) -> tuple[str, str] | None:
    """Find a member's problem, as (kind, description), or return None if it is safe."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    unsafe = find_path_flaw(info.orig_filename)  # filename is truncated at a NUL
    if unsafe is not None:
        return "unsafe-path", unsafe
    if kind == stat.S_IFLNK:
        return "link", "This is a symbolic link. Pack the file itself."
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "not-a-file", "This is not a regular file. Leave it out."
    if info.flag_bits & 0x1:
        return "encrypted", "The file is encrypted. Pack it without a password."
    if info.compress_type not in _METHODS:
        text = "The file is not compressed with deflate, so it cannot be read. Use plain zip."
        return "compression", text
    if info.file_size > limits.file:
        text = f"The file claims {info.file_size:,} bytes, but at most {limits.file:,} are read."
        return "too-large", f"{text} {_LESS}"
    return None


def find_path_flaw(name: str, archive: str = "zip") -> str | None:
    """Describe why a member's path is unsafe, or return None if it is safe."""
    if "\\" in name:
        return "The path contains a backslash. Separate folders by /."
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return f"The path is absolute. Let it start at the top of the {archive}."
    if ".." in name.split("/"):
        return f"The path leads out of its folder (..). Let it stay inside the {archive}."
    if not name.isprintable() or not (name.endswith("/") or name.strip("./ ")):
        return "The path is empty or contains control characters. Rename the file."
    return None


def _unpack_member(path: Path, name: str, info: zipfile.ZipInfo) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(info) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
    except Exception as error:  # as in _list_members
        text = f"The file is damaged in the zip ({describe_error(error)}). {_AGAIN}"
        raise UnsafeZipError("damaged", text, name) from error


def _describe_size_limit(limits: Limits) -> str:
    total = f"{limits.total // 2**20:,} MiB in all"
    if limits.file != math.inf:
        total = f"{limits.file // 2**20:,.0f} MiB per file, {total}"
    return f"The content is larger than the limit ({total}). {_LESS}"
