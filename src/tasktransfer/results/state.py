"""State of an unfinished node, read from its folder: running, failed, interrupted or waiting.

Only ``finished`` and ``damage`` decide whether a node is finished.

A job holds a kernel lock on a file in its node's folder while it runs. The kernel releases the lock
however the process ends, so there are no stale locks and nothing has to be cleaned up. Two
workflows in one results folder therefore never compute a node at the same time. Standard library
only.

Not every shared file system shares locks between machines. A claim by another host therefore counts
as held while the log is fresh (changed within the last five minutes), unless the node's history
says that the job ended. A job killed on another machine may be listed as running for five minutes.
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
from typing import Any, Literal, TypedDict, cast

from tasktransfer.files import json_text, locks

CLAIM = ".claim"
HISTORY = "history.jsonl"
RECORD = "metrics.json"
ROWS = "rows.parquet"
LOG = "train.log"
JOB_LOG = "job.log"
"""Log of a node that is not a training."""
CALL = "TASKTRANSFER_CALL"
"""Environment variable that identifies the Snakemake call which started a job.

If a job failed because of its input, it ends at once when the same call retries it.
"""
INTERRUPTED = "interrupted"
"""Last line of a log whose process was stopped by Ctrl-C."""

RESUME = ".resume"
"""Folder from which a killed training resumes.

It is not an output of the Snakemake rule, so Snakemake's clean-up of a failed job does not delete
it.
"""
FRESH_SECONDS = 300.0
"""Age in seconds beyond which a log has no running job; trainings write every few minutes."""
ENDED = frozenset({"failed", "finished", "interrupted", "merged"})
"""Last history events of a node without a running job."""

DONE, DAMAGED, WAITING = "done", "damaged", "waiting"
State = Literal["running", "failed", "interrupted", "waiting"]


class Claim(TypedDict, total=False):
    """Process that computes a node. ``started``: ISO 8601 in UTC. The job adds the other facts."""

    pid: int
    host: str
    started: str
    label: str
    device: str


class Event(TypedDict, total=False):
    """A line of a node's history.

    ``event``: started, interrupted, failed, finished, merged or set aside. ``time``: ISO 8601 in
    UTC. ``call``: call of the workflow. ``cause``, ``error``: kind and text of an error.
    """

    event: str
    time: str
    pid: int
    host: str
    call: str | None
    digest: str
    cause: str
    error: str


@dataclass(frozen=True, slots=True)
class UnfinishedState:
    """State of an unfinished node.

    ``error``: last line of a failed node's error. ``claim``: process that computes a running node.
    """

    state: State
    error: str | None = None
    claim: Claim | None = None


@contextmanager
def claim_folder(
    folder: Path, say: Callable[[str], None], **facts: Any
) -> Iterator[Callable[..., None]]:
    """Lock a node's folder for this process, after waiting for a process that holds it.

    Waiting is safer than failing: Snakemake deletes the outputs of a failed job, which the other
    process may just have finished.

    Args:
        folder: the node's folder, created if missing.
        say: called with a message about the process it waits for.
        facts: entries that other processes can read while the folder is held.

    Yields:
        A function that adds facts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CLAIM
    with path.open("a+", encoding="utf-8") as stream:
        locks.wait_for_lock(stream.fileno(), lambda: say(_describe_claim(path)))
        facts_so_far = {"started": _format_current_time(), **_describe_process(), **facts}

        def add_facts(**more: Any) -> None:
            facts_so_far.update(more)
            stream.truncate(0)
            stream.write(json.dumps(facts_so_far))
            stream.flush()

        add_facts()
        # The file stays: if it were removed, a waiting process would lock a file that other
        # processes cannot see.
        yield add_facts


def _describe_claim(path: Path) -> str:
    who = read_claim(path.parent)
    return (
        f"waiting: process {who.get('pid', '?')} on {who.get('host', '?')} has been computing this "
        f"node since {who.get('started', '?')}"
    )


def _describe_process() -> Claim:
    return {"pid": os.getpid(), "host": platform.node()}


def _format_current_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def record_event(folder: Path, event: str, **facts: Any) -> None:
    """Add an event with its time, such as ``started`` or ``failed``, to a node's history."""
    line = (
        json.dumps({"event": event, "time": _format_current_time(), **_describe_process(), **facts})
        + "\n"
    )
    with (folder / HISTORY).open("a", encoding="utf-8") as stream:
        stream.write(line)


def read_history(folder: Path) -> list[Event]:
    """Read a node's events, oldest first, skipping lines truncated by a crash."""
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
    return [cast(Event, event) for event in events if isinstance(event, dict)]


def read_claim(folder: Path) -> Claim:
    """Read the last process that claimed a folder, or return {} if there was none."""
    try:
        value = json_text.loads((folder / CLAIM).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast(Claim, value) if isinstance(value, dict) else {}


def read_unfinished_state(folder: Path) -> UnfinishedState:
    """Return the state of an unfinished node, given its results folder.

    It is running if its claim is held, and failed if its log ends in an error. It is waiting if
    there is no log, or if it has a record but other files are missing. Otherwise it was killed and
    is interrupted.
    """
    if is_in_use(folder):
        return UnfinishedState("running", claim=read_claim(folder))
    log = find_log(folder)
    if log is None:
        return UnfinishedState("waiting")
    error = read_last_error(log)
    if error:
        return UnfinishedState("failed", error)
    return UnfinishedState("waiting" if os.path.lexists(folder / RECORD) else "interrupted")


def is_in_use(folder: Path) -> bool:
    """Return whether a job on any machine is working in this folder."""
    return locks.is_held(folder / CLAIM) or _is_used_elsewhere(folder)


def _is_used_elsewhere(folder: Path) -> bool:
    if read_claim(folder).get("host", platform.node()) == platform.node():
        return False
    events = read_history(folder)
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
def try_to_claim_folder(folder: Path) -> Iterator[bool]:
    """Try to lock a node's folder, and yield whether the lock succeeded.

    Nothing is written into the claim, which still describes the last job.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / CLAIM).open("a", encoding="utf-8") as stream:
        yield locks.try_lock(stream.fileno()) and not _is_used_elsewhere(folder)


def find_log(folder: Path) -> Path | None:
    """Find the log file of a node's job, or return None if there is none."""
    return next((log for log in (folder / LOG, folder / JOB_LOG) if log.exists()), None)


def read_last_error(log: Path) -> str | None:
    """Read the last line of the error that ends a log, or return None without an error."""
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
