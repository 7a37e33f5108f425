"""Open untrusted files: regular files only, and up to a maximum size.

These functions never wait for a named pipe, never read a device, and can refuse links. Each refusal
is an OSError with a plain ``strerror``, so that callers report it like any unreadable file.
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
        follow_links: accept a path that is a symbolic link to a regular file.

    Raises:
        OSError: the file cannot be opened, or is a folder, a pipe, a device, a socket, or a link
            that must not be followed.
    """
    try:
        # A device is not even opened, because opening some devices has an effect.
        _refuse_irregular(path, path.stat(follow_symlinks=follow_links).st_mode)
    except ValueError as error:
        raise OSError(errno.EINVAL, "its name contains an invalid character") from error
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    descriptor = os.open(path, flags if follow_links else flags | os.O_NOFOLLOW)
    try:
        # Another file may have this name by now.
        _refuse_irregular(path, os.fstat(descriptor).st_mode)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, most: int | None = None, *, follow_links: bool = True) -> bytes:
    """Read the content of a regular file.

    Args:
        most: maximum number of bytes, None for no limit.
        follow_links: as in ``open_regular``.

    Raises:
        OSError: as in ``open_regular``, or the file is larger than ``most`` (EOVERFLOW).
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
