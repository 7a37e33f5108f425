"""Snakemake in a fork of a process that has imported it, because a start takes longer than a run.

As a program, it reads one call per line of JSON from standard input, and writes its exit code.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

IMPORTED = (
    "smart_open",
    "tasktransfer.designs.opening",
    "tasktransfer.designs.outputs",
    "tasktransfer.designs.transfer.commands",
    "tasktransfer.operate.forecast.estimate",
)
"""Modules that Snakemake and the Snakefile import at every start."""
Call = tuple[Sequence[str], str, Mapping[str, str], str]
"""Arguments, working directory, environment, and beginning of the names of the output's files."""


def run_snakemake(
    words: Sequence[str | Path], folder: Path, environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """Run Snakemake like ``subprocess.run``, with its output as text."""
    with tempfile.TemporaryDirectory() as outputs:
        server = start_server()
        assert server.stdin and server.stdout
        call: Call = ([str(word) for word in words], str(folder), dict(environment), outputs)
        server.stdin.write(json.dumps(call) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, errors = (Path(outputs, name).read_text() for name in ("out", "errors"))
    return subprocess.CompletedProcess(["snakemake", *call[0]], code, out, errors)


@cache
def start_server() -> subprocess.Popen[str]:
    """Start the process that forks, which ends with this one."""
    server = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)  # closes its standard input
    return server


def serve() -> None:
    """Answer calls until standard input ends."""
    from snakemake import cli  # noqa: PLC0415

    for name in IMPORTED:
        import_module(name)
    cli.get_argument_parser()  # imports the plugins
    for line in sys.stdin:
        words, folder, environment, outputs = json.loads(line)
        if (child := os.fork()) == 0:
            for stream, name in ((1, "out"), (2, "errors")):
                os.dup2(os.open(Path(outputs, name), os.O_WRONLY | os.O_CREAT), stream)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(folder)
            sys.argv = ["snakemake", *words]
            cli.main(words)  # ends with SystemExit
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
