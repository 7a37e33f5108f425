"""Progress of one training in its log: fraction done, speed, remaining time."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TextIO

from tasktransfer.files.progress import format_clock_time


class Progress:
    """A counter of the instances in training and evaluation that writes progress lines.

    It writes lines instead of a redrawn bar, because Snakemake's logs are files that are read with
    tail.
    """

    def __init__(self, total: int, label: str, out: TextIO = sys.stderr) -> None:
        self.total = max(1, total)
        self.label = label
        self.out = out
        self.done = 0
        self.started = time.perf_counter()
        self._skipped = 0
        self._last = 0.0

    def count_instances(self, count: int) -> None:
        """Count processed instances, and write a line at most every ten seconds."""
        self.done += count
        if time.perf_counter() - self._last >= 10:
            self._print_line("")

    def skip_instances(self, count: int) -> None:
        """Count instances of an earlier process, which do not affect the speed."""
        self.done += count
        self._skipped += count

    def report_round(
        self, number: int, train_loss: Mapping[str, float], chosen: Sequence[tuple[float, int]]
    ) -> None:
        """Write a line with a round's results.

        Args:
            chosen: per selection, the round's score and the best round so far.
        """
        losses = ", ".join(f"{task} {value:.4f}" for task, value in train_loss.items())
        dev = ", ".join(f"{score:.2f} | best round {best}" for score, best in chosen)
        self._print_line(f" | round {number}: loss {losses} | dev {dev}")

    def print_message(self, text: str) -> None:
        """Write a message on its own line."""
        print(f"{self.label}: {text}", file=self.out, flush=True)

    def _print_line(self, text: str) -> None:
        self._last = time.perf_counter()
        elapsed = self._last - self.started
        share = min(1.0, self.done / self.total)
        rate = (self.done - self._skipped) / max(elapsed, 1e-9)
        left = max(0, self.total - self.done) / rate if rate else float("nan")
        bar = "#" * int(20 * share)
        print(
            f"{self.label} [{bar:<20}] {100 * share:3.0f} % {rate:.0f}/s, "
            f"{format_clock_time(elapsed)} gone, {format_clock_time(left)} left{text}",
            file=self.out,
            flush=True,
        )
