"""Open files that others may have made: regular files only, and no more bytes than a limit.

A named pipe is never waited for, a device is never read, and a link can be refused. Each refusal is
an OSError with a plain ``strerror``, so that whoever reports unreadable files reports these too.
Standard library only.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link",
}


def open_regular(path: Path, *, follow_links: bool = True) -> io.BufferedReader:
    """Open a regular file for reading.

    Args:
        follow_links: whether the path itself may be a symbolic link to a regular file.

    Raises:
        OSError: the file cannot be opened, or is a folder, a pipe, a device, a socket, or a link
            that must not be followed.
    """
    try:
        # A device is not even opened: some act on that.
        _refuse_irregular(path, path.stat(follow_symlinks=follow_links).st_mode)
    except ValueError as error:
        raise OSError(errno.EINVAL, "its name holds a character that no name has") from error
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    descriptor = os.open(path, flags if follow_links else flags | os.O_NOFOLLOW)
    try:
        # What the name means may have changed since.
        _refuse_irregular(path, os.fstat(descriptor).st_mode)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, most: int | None = None, *, follow_links: bool = True) -> bytes:
    """Return the content of a regular file.

    Args:
        most: the most bytes that are read; None if all.
        follow_links: as for ``open_regular``.

    Raises:
        OSError: as ``open_regular``, or the file is larger than ``most`` (EOVERFLOW).
    """
    with open_regular(path, follow_links=follow_links) as stream:
        content = stream.read(-1 if most is None else most + 1)
    if most is not None and len(content) > most:
        raise OSError(errno.EOVERFLOW, f"it is larger than {most:,} bytes", str(path))
    return content


def _refuse_irregular(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no file")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", str(path))
