"""Reader of a submission's files, into memory, from an untrusted zip or folder.

``safe_zip`` decides whether a zip is safe. A folder is read within the same limits.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tasktransfer.designs.challenge.findings import Findings, quote_excerpt
from tasktransfer.designs.challenge.format import FILES
from tasktransfer.errors import format_quantity
from tasktransfer.files.safe_zip import (
    CHUNK_BYTES,
    Budget,
    Limits,
    UnsafeZipError,
    check_zip,
    describe_error,
)
from tasktransfer.files.untrusted import open_regular

LIMITS = Limits(total=256 * 2**20, file=64 * 2**20, archive=64 * 2**20, members=1000)
"""Limits. The toolkit's example of a full submission has 0.2 MiB and at most 30 members."""

MAX_DEPTH = 8
"""Maximum depth of folders that are read."""

_JUNK = {".DS_Store", "Thumbs.db", "desktop.ini"}

Chunks = Iterator[bytes]


@dataclass(frozen=True, slots=True)
class Files:
    """Files of a submission.

    Attributes:
        from_folder: whether a folder was read instead of a zip.
        names: paths of all files, with slashes, in the archive's order, without files that the
            operating system adds.
        contents: path → bytes, for the readable prediction files.
    """

    from_folder: bool = False
    names: list[str] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)


def read_files(path: Path, findings: Findings) -> Files:
    """Read the files of the submission at ``path`` and add all problems to ``findings``."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        text = (
            f"The submission cannot be opened ({describe_error(error)}). Pass a zip file or a "
            "folder."
        )
        findings.add_error("", None, "unreadable", text)
        return Files()
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        text = "The submission is neither a zip file nor a folder. Pass a zip file or a folder."
        findings.add_error("", None, "not-a-zip", text)
        return Files()
    files, junk = Files(from_folder=stat.S_ISDIR(mode)), []
    listing = _read_folder if files.from_folder else _read_zip
    for name, chunks in listing(path, findings):
        if _is_junk(name):
            junk.append(name)
            continue
        files.names.append(name)
        if "/" in name and posixpath.basename(name) in FILES:
            try:
                files.contents[name] = b"".join(chunks)
            except UnsafeZipError as error:
                findings.add_error(name, None, error.flaw.kind, error.flaw.text)
            except OSError as error:
                text = f"The file cannot be read ({describe_error(error)}). Pack the file again."
                findings.add_error(name, None, "unreadable", text)
    if junk:
        findings.add_warning(
            "",
            None,
            "junk",
            f"The archive contains {format_quantity(len(junk), 'file')} of the operating system, "
            f"for example {quote_excerpt(junk[0])}, which are not read. Remove these files.",
        )
    return files


def _is_junk(name: str) -> bool:
    *folders, file = name.split("/")
    return "__MACOSX" in (*folders, file) or file in _JUNK or file.startswith("._")


def _read_zip(path: Path, findings: Findings) -> Iterator[tuple[str, Chunks]]:
    """Yield the path and the content (in chunks) of every file that ``check_zip`` accepts."""
    archive = check_zip(path, LIMITS)
    for flaw in archive.flaws:
        findings.add_error(flaw.member, None, flaw.kind, flaw.text)
    for name in archive.members:
        yield name, archive.read_chunks(name)


def _read_folder(path: Path, findings: Findings) -> Iterator[tuple[str, Chunks]]:
    """Yield the path and the content (in chunks) of every regular file, without following links."""
    budget = Budget(LIMITS)
    for number, (name, entry) in enumerate(_walk_folder(path, "", findings)):
        if number == LIMITS.members:
            text = (
                f"The folder contains more than {LIMITS.members:,} files and folders. Keep only "
                "the prediction files."
            )
            findings.add_error("", None, "too-many-members", text)
            return
        if _is_junk(name) or entry.is_file(follow_symlinks=False):
            yield name, budget.limit_chunks(name, _read_chunks(Path(entry.path)))
        elif entry.is_symlink():
            text = "The path is a symbolic link. Replace the link with the file."
            findings.add_error(name, None, "link", text)
        elif not entry.is_dir():
            findings.add_error(
                name, None, "not-a-file", "The path is not a regular file. Remove the path."
            )


def _read_chunks(file: Path) -> Chunks:
    with open_regular(file, follow_links=False) as stream:
        yield from iter(lambda: stream.read(CHUNK_BYTES), b"")


def _walk_folder(
    folder: Path, above: str, findings: Findings
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield every file and folder below ``folder``, with its path relative to the submission."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        text = f"The folder cannot be listed ({describe_error(error)}). Make the folder readable."
        findings.add_error(above, None, "unreadable", text)
        return
    for entry in entries:
        name = posixpath.join(above, entry.name)
        yield name, entry
        if entry.is_dir(follow_symlinks=False) and name.count("/") < MAX_DEPTH:
            yield from _walk_folder(Path(entry.path), name, findings)
