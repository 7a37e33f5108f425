"""How fast a study goes, and how long the rest takes.

The pace is taken in estimated work, not in trainings, since these differ in length. So how right
the estimates are as absolute numbers does not matter for the time that is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tasktransfer.files import json_text

WINDOW_SECONDS = 3600.0
"""The while over which the pace is taken."""

EARLY_SECONDS = 60.0
"""Before that, what the first trainings have done tells more of their start than of their pace."""

NEWEST = 500
"""Records that are read for it at most."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A training, or the part of it that is done: estimated seconds of work, and when it was
    worked on (seconds since the epoch)."""

    digest: str
    start: float
    end: float
    work: float

    def within(self, start: float) -> float:
        """The work that was done after ``start``."""
        if self.end <= start:
            return 0.0
        length = self.end - self.start
        return self.work * (min(1.0, (self.end - start) / length) if length > 0 else 1.0)


def ended_lately(
    records: Iterable[tuple[str, Path]], work: Mapping[str, float], now: float
) -> list[Piece]:
    """The trainings that ended within the window.

    The time of change of a record says which to read, the record itself when the training ended:
    records may have been copied here. A training that ended in the future, by a clock that is
    ahead, counts as if it had ended now.

    Args:
        records: (digest, record) of trainings that have one.
        work: digest → estimated seconds.
    """
    lately = []
    for digest, file in records:
        with suppress(OSError):
            changed = file.stat().st_mtime
            if abs(now - changed) < WINDOW_SECONDS:
                lately.append((changed, digest, file))
    lately.sort(reverse=True)
    pieces = []
    for _, digest, file in lately[:NEWEST]:
        times = _times(file)
        if times is not None and now - WINDOW_SECONDS < times[1] <= now + WINDOW_SECONDS:
            ahead = max(0.0, times[1] - now)
            pieces.append(Piece(digest, times[0] - ahead, times[1] - ahead, work[digest]))
    return pieces


def count_future_records(records: Iterable[tuple[str, Path]], now: float) -> int:
    """Return the number of records that are dated in the future: a clock is ahead of this one."""
    count = 0
    for _, file in records:
        with suppress(OSError):
            count += file.stat().st_mtime > now + EARLY_SECONDS
    return count


def pace(ended: list[Piece], running: list[Piece], left: float, now: float) -> dict[str, Any]:
    """What is said of the speed.

    Args:
        ended: from ``ended_lately``.
        running: what the running trainings have done so far.
        left: estimated seconds of work still to do.

    Returns:
        ``finished_last_hour``, ``per_hour``, ``seconds_left`` (None where nothing runs and there is
        something left), ``device_seconds_left``.
    """
    begun = [piece.start for piece in (*ended, *running)]
    window = max(now - WINDOW_SECONDS, min(begun, default=now))
    span = max(1.0, now - window)
    done = sum(piece.within(window) for piece in (*ended, *running))
    reliable = done and (ended or span > EARLY_SECONDS)
    # Too early to tell: as if each of those that run did a second of work a second.
    speed = done / span if reliable else float(len(running))
    return {
        "finished_last_hour": len(ended),
        "per_hour": len(ended) / span * 3600,
        "seconds_left": left / speed if running and speed else (None if left else 0.0),
        "device_seconds_left": left,
    }


def _times(record: Path) -> tuple[float, float] | None:
    """Start and end of a training by its record."""
    try:
        provenance = json_text.loads(record.read_bytes())["provenance"]
        start = seconds(provenance["started"])
        return None if start is None else (start, start + float(provenance["seconds"]["total"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def seconds(time_of_day: Any) -> float | None:
    """ISO 8601 as seconds since the epoch."""
    try:
        return datetime.fromisoformat(str(time_of_day)).timestamp()
    except ValueError:
        return None
