"""A process that runs tasktransfer commands one after the other and measures each.

It reads one command per line of JSON from standard input, and writes one outcome per line of JSON
to standard output. One process runs many commands, since a start takes longer than most of them.
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
"""Wall time after which a command counts as hanging, generous because machines may be busy."""
MOST_MEMORY = 6 * 2**30
"""Limit of the address space, to protect the machine."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a command. ``seconds``: processor time. ``memory``: peak resident MiB."""

    code: int
    out: str
    errors: str
    seconds: float
    memory: float


class Worker:
    """The process as a context manager; it starts again after a command that ended it."""

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
        if outcome.memory > 500:  # memory kept by libraries must not count for the next command
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
    """Run a worker until the context ends."""
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
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
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
