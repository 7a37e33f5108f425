"""Kernel file locks: freed however their process ends, so that nothing is ever stale.

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
"""Whoever only looks whether a lock is held holds it for a moment; that is not worth a word."""
REMINDER_SECONDS = 60.0


def wait(descriptor: int, remind: Callable[[], None]) -> None:
    """Lock an open file, waiting for as long as another process holds it; ``remind`` is called now
    and then meanwhile."""
    reminder = time.monotonic() + FIRST_REMINDER_SECONDS
    while not try_lock(descriptor):
        if time.monotonic() > reminder:
            reminder = time.monotonic() + REMINDER_SECONDS
            remind()
        time.sleep(POLL_SECONDS)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file if nobody else holds it; whether it is ours now."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(path: Path) -> bool:
    """Whether some process holds a lock on a file."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not try_lock(descriptor, shared=True)
    finally:
        os.close(descriptor)


@contextmanager
def one_at_a_time(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Let one process at a time make what belongs at ``path``; the others wait.

    The lock is a hidden file beside the path, which stays there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / f".{path.name}.lock").open("a") as stream:
        wait(stream.fileno(), lambda: say(f"waiting: another process makes {path}"))
        yield
