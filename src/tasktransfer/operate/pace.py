"""Speed of a running study and its remaining time.

The speed is measured in estimated work, since trainings differ in length. Only relative errors of
the estimates therefore affect the remaining time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tasktransfer.files import json_text
from tasktransfer.operate.facts import Pace

WINDOW_SECONDS = 3600.0
"""Window over which the speed is measured."""

MAX_ASSUMED_SECONDS = 300.0
"""Longest period of assumed speed that is added to the measured period."""

CLOCK_TOLERANCE = 60.0
"""Difference between two clocks, in seconds, that is not reported."""

NEWEST = 500
"""Largest number of records to read."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A training, or the finished part of it.

    ``start``, ``end``: period of the work, in seconds since 1970. ``work``: estimated seconds.
    """

    digest: str
    start: float
    end: float
    work: float

    def get_work_since(self, start: float) -> float:
        """Return the work that was done after ``start``."""
        if self.end <= start:
            return 0.0
        length = self.end - self.start
        return self.work * (min(1.0, (self.end - start) / length) if length > 0 else 1.0)


def find_ended_trainings(
    records: Iterable[tuple[str, Path]], work: Mapping[str, float], now: float
) -> list[Piece]:
    """Return the trainings that ended within the last hour (``WINDOW_SECONDS``).

    The mtime of a record decides whether it is read. The end time comes from its content, because
    records may have been copied. If a clock is ahead and the end is in the future, it counts as
    now.

    Args:
        records: (digest, record's path) of trainings that have one.
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
        times = _read_start_and_end(file)
        if times is not None and now - WINDOW_SECONDS < times[1] <= now + WINDOW_SECONDS:
            ahead = max(0.0, times[1] - now)
            pieces.append(Piece(digest, times[0] - ahead, times[1] - ahead, work[digest]))
    return pieces


def count_future_records(records: Iterable[tuple[str, Path]], now: float) -> int:
    """Return the number of records dated in the future, by a clock ahead of this machine's."""
    count = 0
    for _, file in records:
        with suppress(OSError):
            count += file.stat().st_mtime > now + CLOCK_TOLERANCE
    return count


def estimate_pace(
    ended: list[Piece], running: list[Piece], left: float, now: float, typical: float
) -> Pace:
    """Estimate the current speed and the remaining time.

    The first minutes of a training include its start, so their speed alone would be too low. The
    estimate therefore includes one imaginary training that takes exactly its forecast time (at most
    ``MAX_ASSUMED_SECONDS``), in addition to the measured ones.

    Args:
        ended: result of ``find_ended_trainings``.
        running: finished parts of the running trainings.
        left: estimated seconds of remaining work.
        typical: estimated seconds of one training.

    Returns:
        The pace; its ``seconds_left`` is None if nothing runs but work is left.
    """
    begun = [piece.start for piece in (*ended, *running)]
    window = max(now - WINDOW_SECONDS, min(begun, default=now))
    span = max(1.0, now - window)
    done = sum(piece.get_work_since(window) for piece in (*ended, *running))
    assumed = min(typical, MAX_ASSUMED_SECONDS)
    # By the forecast, each running training does one second of work per second.
    speed = (done + assumed * len(running)) / (span + assumed)
    return {
        "finished_last_hour": len(ended),
        "per_hour": len(ended) / span * 3600,
        "seconds_left": left / speed if running and speed else (None if left else 0.0),
        "device_seconds_left": left,
    }


def _read_start_and_end(record: Path) -> tuple[float, float] | None:
    """Return the start and end of a training from its record, or None if they are missing."""
    try:
        provenance = json_text.loads(record.read_bytes())["provenance"]
        start = parse_time(provenance["started"])
        return None if start is None else (start, start + float(provenance["seconds"]["total"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def parse_time(text: Any) -> float | None:
    """Convert an ISO 8601 time to seconds since 1970, or return None if it is invalid."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None
