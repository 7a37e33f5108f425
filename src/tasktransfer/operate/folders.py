"""Whether a job works in a node's folder, on this machine or another, and holding it without
waiting."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasktransfer.files import locks
from tasktransfer.results.state import (
    CLAIM,
    JOB_LOG,
    LOG,
    Unfinished,
    history,
    read_claim,
    unfinished,
)

FRESH_SECONDS = 300.0
"""A training writes a line at least every few minutes; a log that is older belongs to none."""

ENDED = frozenset({"failed", "finished", "interrupted", "merged"})
"""Last events of a node that no job works on."""


def state_of(folder: Path) -> Unfinished:
    """The state of a node that is not finished, jobs on other machines included.

    Not every shared file system tells one machine of the locks of another. So a claim that another
    host wrote counts as held while the log is fresh (changed within the last five minutes) and the
    node's history does not say that the job ended: one that is killed on another machine may be
    called running for five minutes.
    """
    if is_in_use(folder):
        return Unfinished("running", claim=read_claim(folder))
    return unfinished(folder)


def in_use_elsewhere(folder: Path) -> bool:
    """Whether another machine seems to work in this folder; see ``state_of``."""
    if read_claim(folder).get("host", platform.node()) == platform.node():
        return False
    events = history(folder)
    if events and events[-1].get("event") in ENDED:
        return False
    return any(_is_fresh(folder / name) for name in (LOG, JOB_LOG, CLAIM))


def _is_fresh(file: Path) -> bool:
    try:
        # Clocks of two machines differ, in either direction.
        return abs(time.time() - file.stat().st_mtime) < FRESH_SECONDS
    except OSError:
        return False


def is_in_use(folder: Path) -> bool:
    """Whether a job works in this folder, here or elsewhere."""
    return locks.is_held(folder / CLAIM) or in_use_elsewhere(folder)


@contextmanager
def held_if_free(folder: Path) -> Iterator[bool]:
    """Hold a folder as a job would, if none does; whether it is held now. Never waits.

    Nothing is written into the claim: it says who worked here last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / CLAIM).open("a", encoding="utf-8") as stream:
        yield locks.try_lock(stream.fileno()) and not in_use_elsewhere(folder)
