"""Files and folders written whole: atomic replacement, and which folders may be replaced.

A folder is ours if it holds the file that its maker writes into it. Anything else is somebody's
work, whatever it is called, and is left alone. Standard library only.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.errors import DataError, StorageError
from tasktransfer.files import json_text
from tasktransfer.files.regular import open_regular


@dataclass(frozen=True, slots=True)
class Maker:
    """How the folders of one command are known: ``file`` in them is a JSON object with ``key``.
    ``what`` such a folder is, for messages."""

    what: str
    file: str
    key: str

    def said_of(self, folder: Path) -> dict[str, Any] | None:
        """What the maker wrote of a folder; None if it is not of this maker."""
        try:
            value = json_text.read(folder / self.file)
        except (OSError, ValueError):
            return None
        return value if isinstance(value, dict) and self.key in value else None


@contextmanager
def replacing_folder(folder: Path, maker: Maker) -> Iterator[Path]:
    """Give an empty folder to fill, and put it in the place of ``folder`` when the block ends well.

    When the block raises, ``folder`` stays as it was. Parent folders are made.

    Raises:
        DataError: ``folder`` is neither empty nor of this maker; asked before the block begins.
    """
    _refuse_others_work(folder, maker)
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)  # of a process that had this number before
    try:
        fresh = part / "new"
        fresh.mkdir(parents=True)
        yield fresh
        _swap(fresh, folder, part / "old")
    finally:
        shutil.rmtree(part, ignore_errors=True)


def sweep_parts(folder: Path) -> None:
    """Remove what killed processes left beside a folder that nobody else makes now."""
    for part in folder.parent.glob(f".{folder.name}.*.part"):
        shutil.rmtree(part, ignore_errors=True)


def _refuse_others_work(folder: Path, maker: Maker) -> None:
    if not folder.exists() and not folder.is_symlink():
        return
    if folder.is_dir() and (not any(folder.iterdir()) or maker.said_of(folder) is not None):
        return
    raise DataError(
        f"{folder}: exists and holds no {maker.file} of a {maker.what}, so it is left alone; name "
        "another folder, or remove this one"
    )


def _swap(fresh: Path, folder: Path, old: Path) -> None:
    """Rename ``fresh`` to ``folder``; what was there goes to ``old``, and comes back on failure."""
    if not folder.exists():
        fresh.replace(folder)
        return
    folder.replace(old)
    try:
        fresh.replace(folder)
    except OSError:
        old.replace(folder)
        raise


_synced = ContextVar("synced", default=True)


@contextmanager
def without_sync() -> Iterator[None]:
    """Files that are replaced in this block are not waited for to be on the disk: for a folder that
    is removed in the end, whatever happens to the machine."""
    before = _synced.set(False)
    try:
        yield
    finally:
        _synced.reset(before)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path beside ``path`` to write to, and move it there when the block ends well.

    The move is atomic and follows an fsync; when the block raises, ``path`` stays as it was and
    the part is removed. Parent folders are made.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        raise StorageError(f"{path}: is a device or a pipe. Give the name of a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        _sync(part)
        part.replace(path)
        _sync(path.parent)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def private_folder(folder: Path, remedy: str) -> Path:
    """Make a folder in a place where everybody may write.

    Args:
        remedy: what to do if somebody else has it.

    Raises:
        StorageError: it is another user's, a link, or others can write to it: files in it could
            lead anywhere.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    seen = folder.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid() or seen.st_mode & 0o022:
        raise StorageError(f"{folder}: others can write to it. Remove it, or {remedy}")
    return folder


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a regular file's content, as 64 hex digits."""
    with open_regular(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sweep(folder: Path) -> None:
    """Remove what killed processes left half-written in a folder that nobody else writes to now."""
    for half in folder.glob(".*.part"):
        if half.is_dir():
            shutil.rmtree(half, ignore_errors=True)
        else:
            half.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    if not _synced.get():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
