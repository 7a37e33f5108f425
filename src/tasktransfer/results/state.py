"""How far a stage is, read off its folder: done, running, failed, interrupted or waiting.

A training holds a kernel lock on a file in its stage's folder for as long as it lives. The kernel
frees the lock however the process ends, so nothing is stale and nothing has to be cleaned up; and
two workflows on one results folder never train one stage at once. Standard library only.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from tasktransfer import json_text, locks

CLAIM = ".claim"
HISTORY = "history.jsonl"
RECORD = "metrics.json"
PREDICTIONS = "predictions.parquet"
LOG = "train.log"
INTERRUPTED = "interrupted"
"""The last line of a log whose process was stopped by Ctrl-C."""

State = Literal["done", "running", "failed", "interrupted", "waiting"]


@dataclass(frozen=True, slots=True)
class StageState:
    """``error`` is the last line of the error of a failed stage; ``claim`` says who trains a
    running one: "pid", "host", "started" (ISO 8601, UTC) and what the trainer added."""

    state: State
    error: str | None = None
    claim: dict[str, Any] | None = None


@contextmanager
def claim(folder: Path, say: Callable[[str], None], **facts: Any) -> Iterator[Callable[..., None]]:
    """Hold a stage's folder for this process, waiting until nobody else does.

    It waits and does not fail: Snakemake removes the outputs of a job that fails, and these may be
    what the other process has just finished.

    Args:
        folder: the stage's folder; made if it is not there.
        say: told whom it waits for.
        facts: what others may read while it is held.

    Yields:
        A function that adds facts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CLAIM
    with path.open("a+", encoding="utf-8") as stream:
        locks.wait(stream.fileno(), lambda: say(_who_holds(path)))
        known = {"started": _now(), **_process(), **facts}

        def tell(**more: Any) -> None:
            known.update(more)
            stream.truncate(0)
            stream.write(json.dumps(known))
            stream.flush()

        tell()
        # The file stays: were it removed, a process that waits for it would lock a file that
        # nobody else can see.
        yield tell


def _who_holds(path: Path) -> str:
    who = _read_claim(path)
    return (
        f"waiting: process {who.get('pid', '?')} on {who.get('host', '?')} trains this stage since "
        f"{who.get('started', '?')}"
    )


def _process() -> dict[str, Any]:
    return {"pid": os.getpid(), "host": platform.node()}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def remember(folder: Path, event: str, **facts: Any) -> None:
    """Add a line to the stage's history: started, interrupted, failed or finished, and when."""
    line = json.dumps({"event": event, "time": _now(), **_process(), **facts}) + "\n"
    with (folder / HISTORY).open("a", encoding="utf-8") as stream:
        stream.write(line)


def history(folder: Path) -> list[dict[str, Any]]:
    """The events of a stage, oldest first; a line that was cut off by a crash is left out."""
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


def _read_claim(path: Path) -> dict[str, Any]:
    try:
        value = json_text.loads(path.read_text(encoding="utf-8"))
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
    if locks.is_held(path):
        return StageState("running", claim=_read_claim(path))
    log = folder / LOG
    if not log.exists():
        return StageState("waiting")
    error = last_error(log)
    return StageState("failed", error) if error else StageState("interrupted")


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
