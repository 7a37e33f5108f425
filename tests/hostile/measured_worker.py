"""A process that runs commands of tasktransfer one after the other, and says what each took.

A line of JSON on standard input is the words of a command; a line of JSON on standard output is
its outcome. One process for many commands, since a start takes longer than most of them.
"""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

SECONDS = 120
"""Of the clock, after which a command has ended nothing: a busy machine is no fault of it."""
MOST_MEMORY = 6 * 2**30
"""Address space, so that a fault takes no machine along."""


@dataclass(frozen=True)
class Outcome:
    """``seconds``: of the processor; ``memory``: most resident MiB meanwhile."""

    code: int
    out: str
    errors: str
    seconds: float
    memory: float


class Worker:
    """The process, as a context; it starts again after a command that ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(self, words: Sequence[str], folder: Path) -> Outcome:
        """Run a command in a folder.

        Raises:
            AssertionError: the command ended the process, or took too long.
        """
        process = self._process = self._process or _start()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps([str(folder), *words]) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            code = process.wait()
            self._process = None
            raise AssertionError(f"{' '.join(words)}: ended its process (exit code {code})")
        outcome = Outcome(**json.loads(answer))
        if outcome.memory > 500:  # what a library keeps is not the next command's
            self.stop()
        return outcome

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                assert stream is not None
                stream.close()
            self._process = None


@contextmanager
def worker() -> Iterator[Worker]:
    """A worker for as long as the context lasts."""
    own = Worker()
    try:
        yield own
    finally:
        own.stop()


def _start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def main() -> None:
    from tasktransfer import cli  # noqa: PLC0415

    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        folder, *words = json.loads(line)
        os.chdir(folder)
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        out, errors, began = io.StringIO(), io.StringIO(), time.process_time()
        signal.alarm(SECONDS)
        with redirect_stdout(out), redirect_stderr(errors):
            try:
                code = cli.main(words)
            except SystemExit as end:
                code = int(end.code) if isinstance(end.code, int) else 2
            except BaseException:
                traceback.print_exc()
                code = 1
        signal.alarm(0)
        outcome = {
            "code": code,
            "out": out.getvalue(),
            "errors": errors.getvalue(),
            "seconds": time.process_time() - began,
            "memory": _peak(),
        }
        print(json.dumps(outcome), file=answers, flush=True)


def _peak() -> float:
    status = Path("/proc/self/status").read_text()
    (peak,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1024


if __name__ == "__main__":
    main()
