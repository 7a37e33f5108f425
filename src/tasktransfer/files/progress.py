"""Progress and remaining time of a command that runs for more than two seconds.

On a terminal this is one line of standard error, which is redrawn and removed at the end.
Elsewhere, as in a job's log, it is one line every ten seconds. Standard library only.
"""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TextIO, TypeVar

PATIENCE_SECONDS = 2.0
"""Seconds before the first progress line."""
REDRAWN_SECONDS, LINE_SECONDS = 0.2, 10.0
_CLEAR = "\r\x1b[K"

T = TypeVar("T")


def show_progress(
    items: Collection[T],
    label: str,
    out: TextIO | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[T]:
    """Yield items, and show how many of them are done.

    Args:
        items: items to process. Their number gives the remaining time.
        label: activity, such as "reading records".
        out: stream to write to, None for standard error.
        clock: function that returns the time in seconds.
    """
    line = _Line(len(items), label, out or sys.stderr, clock)
    try:
        for number, item in enumerate(items):
            line.show(number)
            yield item
    finally:
        line.end()


@contextmanager
def count_progress(
    total: int,
    label: str,
    out: TextIO | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Callable[[int], None]]:
    """Yield a function that counts finished items, and show their progress."""
    line = _Line(total, label, out or sys.stderr, clock)
    done = 0

    def add_progress(count: int) -> None:
        nonlocal done
        done += count
        line.show(done)

    try:
        yield add_progress
    finally:
        line.end()


class StatusLine:
    """A line about a long command: redrawn on a terminal, elsewhere repeated every ten seconds.

    Args:
        label: first words of the line.
        out: stream to write to, None for standard error.
    """

    def __init__(self, label: str, out: TextIO | None = None) -> None:
        self.label, self.out = label, out or sys.stderr
        self.is_terminal = self.out.isatty()
        self._due = 0.0 if self.is_terminal else time.monotonic() + LINE_SECONDS

    def show(self, text: str) -> None:
        """Write a text, unless a text was written a moment ago."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + (REDRAWN_SECONDS if self.is_terminal else LINE_SECONDS)
        line = f"{self.label}: {text}"
        width = shutil.get_terminal_size().columns - 1
        self.out.write(f"{_CLEAR}{line[:width]}" if self.is_terminal else f"{line}\n")
        self.out.flush()

    def end(self, text: str) -> None:
        """Replace the progress line by a final text, or remove it for an empty text."""
        if self.is_terminal:
            self.out.write(_CLEAR)
        self.out.write(f"{self.label}: {text}\n" if text else "")
        self.out.flush()


class _Line:
    """The progress line of one activity."""

    def __init__(self, total: int, label: str, out: TextIO, clock: Callable[[], float]) -> None:
        self.total, self.label, self.out, self.clock = total, label, out, clock
        self.redrawn = out.isatty()
        self.every = REDRAWN_SECONDS if self.redrawn else LINE_SECONDS
        self.began = clock()
        self.due = self.began + PATIENCE_SECONDS
        self.is_drawn = False

    def show(self, done: int) -> None:
        """Write the progress, unless it was written a moment ago."""
        now = self.clock()
        if now < self.due:
            return
        self.due = now + self.every
        gone = now - self.began
        left = gone / done * (self.total - done) if done else math.nan
        times = f"{format_clock_time(gone)} elapsed, {format_clock_time(left)} left"
        text = f"{self.label}: {done:,} of {self.total:,}, {times}"
        self.out.write(f"{_CLEAR}{text}" if self.redrawn else f"{text}\n")
        self.out.flush()
        self.is_drawn = True

    def end(self) -> None:
        """Remove the progress line from the terminal."""
        if self.redrawn and self.is_drawn:
            self.out.write(_CLEAR)
            self.out.flush()


def format_clock_time(seconds: float) -> str:
    """Format a duration as 1:05 (minutes) or 2:01:05 (hours), or as "?" for NaN."""
    if math.isnan(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
