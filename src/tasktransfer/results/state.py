"""How far a node is that is not finished, read off its folder: running, failed, interrupted or
waiting. Whether it is finished, ``finished`` and ``damage`` say alone.

A job holds a kernel lock on a file in its node's folder for as long as it lives. The kernel
frees the lock however the process ends, so nothing is stale and nothing has to be cleaned up; and
two workflows on one results folder never make one node at once. Standard library only.

Not every shared file system tells one machine of the locks of another. So a claim that another
host wrote counts as held while the log is fresh (changed within the last five minutes) and the
node's history does not say that the job ended: one that is killed on another machine may be called
running for five minutes.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from tasktransfer.files import json_text, locks

CLAIM = ".claim"
HISTORY = "history.jsonl"
RECORD = "metrics.json"
ROWS = "rows.parquet"
OLD_ROWS = "predictions.parquet"
"""What the rows of a training were called before all nodes had one schema of rows."""
LOG = "train.log"
JOB_LOG = "job.log"
"""The log of what is no training."""
CALL = "TASKTRANSFER_CALL"
"""The environment variable that names the call of Snakemake which started a job; a job that failed
for its input's sake ends at once when the same call tries it again."""
INTERRUPTED = "interrupted"
"""The last line of a log whose process was stopped by Ctrl-C."""

RESUME = ".resume"
"""Where a training keeps what it goes on from after a kill: no output that Snakemake knows, so that
its clean-up of a failed job does not take it."""
FRESH_SECONDS = 300.0
"""A training writes a line at least every few minutes; a log that is older belongs to none."""
ENDED = frozenset({"failed", "finished", "interrupted", "merged"})
"""Last events of a node that no job works on."""

DONE, DAMAGED, WAITING = "done", "damaged", "waiting"
State = Literal["running", "failed", "interrupted", "waiting"]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """``error`` is the last line of the error of a failed node; ``claim`` says who makes a
    running one: "pid", "host", "started" (ISO 8601, UTC) and what the job added."""

    state: State
    error: str | None = None
    claim: dict[str, Any] | None = None


@contextmanager
def claim(folder: Path, say: Callable[[str], None], **facts: Any) -> Iterator[Callable[..., None]]:
    """Hold a node's folder for this process, waiting until nobody else does.

    It waits and does not fail: Snakemake removes the outputs of a job that fails, and these may be
    what the other process has just finished.

    Args:
        folder: the node's folder; made if it is not there.
        say: told whom it waits for.
        facts: what others may read while it is held.

    Yields:
        A function that adds facts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CLAIM
    with path.open("a+", encoding="utf-8") as stream:
        locks.wait(stream.fileno(), lambda: say(_who_holds(path)))
        facts_so_far = {"started": _now(), **_process(), **facts}

        def tell(**more: Any) -> None:
            facts_so_far.update(more)
            stream.truncate(0)
            stream.write(json.dumps(facts_so_far))
            stream.flush()

        tell()
        # The file stays: were it removed, a process that waits for it would lock a file that
        # nobody else can see.
        yield tell


def _who_holds(path: Path) -> str:
    who = read_claim(path.parent)
    return (
        f"waiting: process {who.get('pid', '?')} on {who.get('host', '?')} is making it since "
        f"{who.get('started', '?')}"
    )


def _process() -> dict[str, Any]:
    return {"pid": os.getpid(), "host": platform.node()}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def remember(folder: Path, event: str, **facts: Any) -> None:
    """Add a line to the node's history: started, interrupted, failed or finished, and when."""
    line = json.dumps({"event": event, "time": _now(), **_process(), **facts}) + "\n"
    with (folder / HISTORY).open("a", encoding="utf-8") as stream:
        stream.write(line)


def history(folder: Path) -> list[dict[str, Any]]:
    """The events of a node, oldest first; a line that was cut off by a crash is left out."""
    events = []
    try:
        lines = (folder / HISTORY).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    for line in lines:
        try:
            events.append(json_text.loads(line))
        except ValueError:
            continue
    return [event for event in events if isinstance(event, dict)]


def read_claim(folder: Path) -> dict[str, Any]:
    """What the last process that claimed a folder said of itself; empty if none did."""
    try:
        value = json_text.loads((folder / CLAIM).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def unfinished(folder: Path) -> Unfinished:
    """The state of a node that is not finished, whose results belong in ``folder``.

    It is running if its claim is held, failed if its log ends in an error, waiting if there is no
    log, or if a record is there all the same (something else of it is gone), and interrupted
    otherwise: it was killed.
    """
    if is_in_use(folder):
        return Unfinished("running", claim=read_claim(folder))
    log = log_in(folder)
    if log is None:
        return Unfinished("waiting")
    error = last_error(log)
    if error:
        return Unfinished("failed", error)
    return Unfinished("waiting" if os.path.lexists(folder / RECORD) else "interrupted")


def is_in_use(folder: Path) -> bool:
    """Whether a job works in this folder, on this machine or another."""
    return locks.is_held(folder / CLAIM) or _in_use_elsewhere(folder)


def _in_use_elsewhere(folder: Path) -> bool:
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


@contextmanager
def held_if_free(folder: Path) -> Iterator[bool]:
    """Hold a folder as a job would, if none does; whether it is held now. Never waits.

    Nothing is written into the claim: it says who worked here last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / CLAIM).open("a", encoding="utf-8") as stream:
        yield locks.try_lock(stream.fileno()) and not _in_use_elsewhere(folder)


def log_in(folder: Path) -> Path | None:
    """The log of a node's job; None: there is none."""
    return next((log for log in (folder / LOG, folder / JOB_LOG) if log.exists()), None)


def last_error(log: Path) -> str | None:
    """The last line of the error that a log ends in, or None."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - 65536))
            tail = stream.read().decode("utf-8", "replace")
    except OSError:
        return None
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    if lines and lines[-1] in (INTERRUPTED, "KeyboardInterrupt"):
        return None
    for line in reversed(lines):
        if line.startswith("error:"):
            return line.removeprefix("error:").strip()
    return lines[-1] if any(line.startswith("Traceback ") for line in lines) else None
