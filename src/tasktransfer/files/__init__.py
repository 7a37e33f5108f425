"""Atomic replacement of files and folders, with a check that a folder may be replaced.

A folder may be replaced if it contains the file that its maker writes into it. Any other folder is
a user's work, whatever its name, and is not touched. Standard library only.
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
from glob import escape
from pathlib import Path
from typing import Any

from tasktransfer.errors import DataError, StorageError
from tasktransfer.files import json_text
from tasktransfer.files.untrusted import open_regular


@dataclass(frozen=True, slots=True)
class Maker:
    """A command that writes folders, and the file by which its folders are recognised.

    Attributes:
        what: description of such a folder, for messages.
        file: name of a JSON file in the folder.
        key: key that the JSON object has.
    """

    what: str
    file: str
    key: str

    def read_object(self, folder: Path) -> dict[str, Any] | None:
        """Read a JSON object that identifies a folder's maker, or return None for other folders."""
        try:
            value = json_text.read(folder / self.file)
        except (OSError, ValueError):
            return None
        return value if isinstance(value, dict) and self.key in value else None


@contextmanager
def replace_folder(folder: Path, maker: Maker) -> Iterator[Path]:
    """Yield an empty folder to fill, which replaces ``folder`` if the block succeeds.

    If the block raises, ``folder`` stays unchanged. Parent folders are created.

    Raises:
        DataError: ``folder`` is neither empty nor of this maker; checked before the block begins.
    """
    _refuse_other_content(folder, maker)
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)  # from an earlier process with the same id
    try:
        fresh = part / "new"
        fresh.mkdir(parents=True)
        yield fresh
        _replace_old_folder(fresh, folder, part / "old")
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def create_folder(folder: Path) -> Iterator[None]:
    """Create a folder for the block, and remove a new folder if the block fails."""
    is_new = not os.path.lexists(folder)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _refuse_other_content(folder: Path, maker: Maker) -> None:
    if not folder.exists() and not folder.is_symlink():
        return
    if folder.is_dir() and (not any(folder.iterdir()) or maker.read_object(folder) is not None):
        return
    raise DataError(
        f"{folder}: The folder contains no {maker.file}, so it is not a {maker.what} and is not "
        "replaced. Choose another folder, or remove this folder."
    )


def _replace_old_folder(fresh: Path, folder: Path, old: Path) -> None:
    """Move the old folder to ``old`` and ``fresh`` to ``folder``, or undo it on failure."""
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
def skip_sync() -> Iterator[None]:
    """Replace files without fsync in the block, for a folder that is removed later."""
    before = _synced.set(False)
    try:
        yield
    finally:
        _synced.reset(before)


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to ``path``, which replaces it if the block succeeds.

    The move is atomic and follows an fsync. If the block raises, ``path`` stays unchanged and the
    temporary file is removed. Parent folders are created.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        raise StorageError(f"{path}: The path is a device or a pipe. Specify a file.")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        _flush_to_disk(part)
        part.replace(path)
        _flush_to_disk(path.parent)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def create_private_folder(folder: Path, remedy: str) -> Path:
    """Create a folder with private permissions at a place that everyone can write to.

    Args:
        remedy: remedy for the message if another user owns the folder.

    Raises:
        StorageError: the folder belongs to another user, is a link, or is writable by others, so
            that its files could be links to any place.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    seen = folder.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid() or seen.st_mode & 0o022:
        raise StorageError(
            f"{folder}: Other users can write to this folder. Remove the folder, or {remedy}"
        )
    return folder


def compute_sha256(file: Path) -> str:
    """Compute the SHA-256 of a regular file's content (64 hex digits)."""
    with open_regular(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def remove_partial_files(folder: Path, name: str = "") -> None:
    """Remove partial files and folders of killed processes, which no other process may write now.

    Args:
        folder: folder that contains them.
        name: name of the one file or folder whose partial versions are removed; empty for all.
    """
    for half in folder.glob(f".{escape(name)}.*.part" if name else ".*.part"):
        if half.is_dir():
            shutil.rmtree(half, ignore_errors=True)
        else:
            half.unlink(missing_ok=True)


def _flush_to_disk(path: Path) -> None:
    if not _synced.get():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
