"""How far a stage is, read off its folder: done, running, failed, interrupted or waiting.

A training holds a kernel lock on a file in its stage's folder for as long as it lives. The kernel
frees the lock however the process ends, so nothing is stale and nothing has to be cleaned up; and
two workflows on one results folder never train one stage at once. Standard library only.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from tasktransfer.errors import TrainingError

CLAIM = ".claim"
RECORD = "metrics.json"
LOG = "train.log"

PATIENCE = 2.0
"""Seconds that a claim is tried for: whoever only looks at a stage holds its lock for a moment."""

State = Literal["done", "running", "failed", "interrupted", "waiting"]


@dataclass(frozen=True, slots=True)
class StageState:
    """``error`` is the last line of the error of a failed stage; ``claim`` says who trains a
    running one: "pid", "host", "started" (ISO 8601, UTC) and what the trainer added."""

    state: State
    error: str | None = None
    claim: dict[str, Any] | None = None


@contextmanager
def claim(folder: Path, **facts: Any) -> Iterator[None]:
    """Hold a stage's folder for this process.

    Args:
        folder: the stage's folder; made if it is not there.
        facts: what others may read while it is held, for example the device.

    Raises:
        TrainingError: another process trains this stage.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CLAIM
    with path.open("a+", encoding="utf-8") as stream:
        _lock(stream.fileno(), path)
        started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        who = {"pid": os.getpid(), "host": platform.node(), "started": started, **facts}
        stream.truncate(0)
        stream.write(json.dumps(who))
        stream.flush()
        # The file stays: were it removed, a process that waits for it would lock a file that
        # nobody else can see.
        yield


def _lock(descriptor: int, path: Path) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise TrainingError(
                    f"{path}: another process trains this stage ({_holder(path)}); two workflows "
                    "on one results folder share what is finished, so wait for it and start again"
                ) from None
            time.sleep(0.05)
        else:
            return


def _holder(path: Path) -> str:
    who = _read_claim(path)
    return f"pid {who.get('pid', '?')} on {who.get('host', '?')}, since {who.get('started', '?')}"


def _read_claim(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def stage_state(folder: Path) -> StageState:
    """The state of the stage whose results belong in ``folder``.

    A stage without record is running if its claim is held, failed if its log ends in an error,
    interrupted if there is a log all the same (it was killed), and waiting otherwise.
    """
    if (folder / RECORD).exists():
        return StageState("done")
    path = folder / CLAIM
    if _is_held(path):
        return StageState("running", claim=_read_claim(path))
    log = folder / LOG
    if not log.exists():
        return StageState("waiting")
    error = last_error(log)
    return StageState("failed", error) if error else StageState("interrupted")


def _is_held(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def last_error(log: Path) -> str | None:
    """The last line of the error that a log ends in, or None."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - 65536))
            tail = stream.read().decode("utf-8", "replace")
    except OSError:
        return None
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    for line in reversed(lines):
        if line.startswith("error:"):
            return line.removeprefix("error:").strip()
    return lines[-1] if any(line.startswith("Traceback ") for line in lines) else None
