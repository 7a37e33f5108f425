"""How far a command is, and how long it still takes, once it has run for two seconds.

On a terminal it is one line of standard error that is drawn again and goes at the end; elsewhere,
as in a job's log, a line every ten seconds. Standard library only.
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
"""A command that is done before is quiet."""
REDRAWN_SECONDS, LINE_SECONDS = 0.2, 10.0
_CLEAR = "\r\x1b[K"

T = TypeVar("T")


def with_progress(
    items: Collection[T],
    label: str,
    out: TextIO | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[T]:
    """The items one after the other, while it is said how many of them are done.

    Args:
        items: what is worked through; their number is what the time left is reckoned by.
        label: what is done, "reading records".
        out: where it is said; None: standard error.
        clock: seconds.
    """
    line = _Line(len(items), label, out or sys.stderr, clock)
    try:
        for number, item in enumerate(items):
            line.show(number)
            yield item
    finally:
        line.end()


@contextmanager
def counting(
    total: int,
    label: str,
    out: TextIO | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Callable[[int], None]]:
    """As ``with_progress``, for work that tells itself how many more it has done."""
    line = _Line(total, label, out or sys.stderr, clock)
    done = 0

    def more(count: int) -> None:
        nonlocal done
        done += count
        line.show(done)

    try:
        yield more
    finally:
        line.end()


class StatusLine:
    """One line about a long command: drawn again on a terminal, else repeated every ten seconds.

    Args:
        label: first words of the line.
        out: stream to write to; None for standard error.
    """

    def __init__(self, label: str, out: TextIO | None = None) -> None:
        self.label, self.out = label, out or sys.stderr
        self.is_terminal = self.out.isatty()
        self._due = 0.0 if self.is_terminal else time.monotonic() + LINE_SECONDS

    def show(self, text: str) -> None:
        """Write the text, unless another one was written a moment ago."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + (REDRAWN_SECONDS if self.is_terminal else LINE_SECONDS)
        line = f"{self.label}: {text}"
        width = shutil.get_terminal_size().columns - 1
        self.out.write(f"{_CLEAR}{line[:width]}" if self.is_terminal else f"{line}\n")
        self.out.flush()

    def end(self, text: str) -> None:
        """Replace the line by a last one; an empty text removes it."""
        if self.is_terminal:
            self.out.write(_CLEAR)
        self.out.write(f"{self.label}: {text}\n" if text else "")
        self.out.flush()


class _Line:
    """The line of one piece of work."""

    def __init__(self, total: int, label: str, out: TextIO, clock: Callable[[], float]) -> None:
        self.total, self.label, self.out, self.clock = total, label, out, clock
        self.redrawn = out.isatty()
        self.every = REDRAWN_SECONDS if self.redrawn else LINE_SECONDS
        self.began = clock()
        self.due = self.began + PATIENCE_SECONDS
        self.is_drawn = False

    def show(self, done: int) -> None:
        """Say how far it is, unless it was said a moment ago."""
        now = self.clock()
        if now < self.due:
            return
        self.due = now + self.every
        gone = now - self.began
        left = gone / done * (self.total - done) if done else math.nan
        share = f"{done:,} of {self.total:,}, {clock_text(gone)} gone, {clock_text(left)} left"
        text = f"{self.label}: {share}"
        self.out.write(f"{_CLEAR}{text}" if self.redrawn else f"{text}\n")
        self.out.flush()
        self.is_drawn = True

    def end(self) -> None:
        """Leave the terminal as it was."""
        if self.redrawn and self.is_drawn:
            self.out.write(_CLEAR)
            self.out.flush()


def clock_text(seconds: float) -> str:
    """A time as minutes and seconds, 1:05, or hours too, 2:01:05; NaN: "?"."""
    if math.isnan(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
