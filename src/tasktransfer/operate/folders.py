"""Whether a stage's folder is being trained in, and holding it without waiting."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tasktransfer import json_text, locks
from tasktransfer.results.state import CLAIM, LOG, StageState, history, stage_state

FRESH_SECONDS = 300.0
"""A training writes a line at least every few minutes; a log that is older belongs to none."""

ENDED = frozenset({"failed", "finished", "interrupted", "merged"})
"""Last events of a stage that nobody trains."""


def state_of(folder: Path) -> StageState:
    """The state of a stage that is not finished, trainings on other machines included.

    Not every shared file system tells one machine of the locks of another. So a claim that another
    host wrote counts as held while the log is fresh (changed within the last five minutes) and the
    stage's history does not say that the training ended: one that is killed on another machine may
    be called running for five minutes.
    """
    if is_trained(folder):
        return StageState("running", claim=read_claim(folder))
    state = stage_state(folder)
    # Its record is there and something else of it is not: it has to be trained once more.
    return StageState("waiting") if state.state == "done" else state


def trained_elsewhere(folder: Path) -> bool:
    """Whether another machine seems to train in this folder; see ``state_of``."""
    if read_claim(folder).get("host", platform.node()) == platform.node():
        return False
    events = history(folder)
    if events and events[-1].get("event") in ENDED:
        return False
    return any(_is_fresh(folder / name) for name in (LOG, CLAIM))


def _is_fresh(file: Path) -> bool:
    try:
        # Clocks of two machines differ, in either direction.
        return abs(time.time() - file.stat().st_mtime) < FRESH_SECONDS
    except OSError:
        return False


def read_claim(folder: Path) -> dict[str, Any]:
    """What the last process that claimed a folder said of itself; empty if none did."""
    try:
        value = json_text.loads((folder / CLAIM).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def is_trained(folder: Path) -> bool:
    """Whether a process trains in this folder, here or elsewhere."""
    return locks.is_held(folder / CLAIM) or trained_elsewhere(folder)


@contextmanager
def held_if_free(folder: Path) -> Iterator[bool]:
    """Hold a folder as a training would, if nobody does; whether it is held now. Never waits.

    Nothing is written into the claim: it says who trained here last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / CLAIM).open("a", encoding="utf-8") as stream:
        yield locks.try_lock(stream.fileno()) and not trained_elsewhere(folder)
