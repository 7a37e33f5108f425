"""Kernel file locks, which are released when their process ends, so that no lock is ever stale.

Standard library only.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

POLL_SECONDS = 0.2
FIRST_REMINDER_SECONDS = 2.0
"""Delay of the first reminder. A process that only tests a lock holds it for a moment."""
REMINDER_SECONDS = 60.0


def wait_for_lock(descriptor: int, remind: Callable[[], None]) -> None:
    """Lock an open file, waiting until no other process holds the lock.

    Args:
        remind: called after ``FIRST_REMINDER_SECONDS``, then every ``REMINDER_SECONDS``.
    """
    reminder = time.monotonic() + FIRST_REMINDER_SECONDS
    while not try_lock(descriptor):
        if time.monotonic() > reminder:
            reminder = time.monotonic() + REMINDER_SECONDS
            remind()
        time.sleep(POLL_SECONDS)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file if possible, and return whether it is locked."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock of a file."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not try_lock(descriptor, shared=True)
    finally:
        os.close(descriptor)


@contextmanager
def lock_path(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of ``path`` in the block, so that only one process writes it.

    The lock is a hidden file next to the path, which is not removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / f".{path.name}.lock").open("a") as stream:
        wait_for_lock(stream.fileno(), lambda: say(f"waiting: another process is writing {path}"))
        yield
