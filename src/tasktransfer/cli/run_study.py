"""The command ``run``: run a whole study with Snakemake and show one progress line."""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tasktransfer.cli.demo_study import WORKFLOW
from tasktransfer.cli.options import add_command, add_flag, add_number, add_option, add_set_option
from tasktransfer.cli.run_forecast import Forecast, forecast_study
from tasktransfer.errors import ConfigError, TaskTransferError, escape_line
from tasktransfer.files.progress import StatusLine, format_clock_time
from tasktransfer.results.state import read_last_error

if TYPE_CHECKING:
    from tasktransfer.designs.design import Design
    from tasktransfer.results.study import Study

PROFILES = ("default", "slurm", "slurm-pilot")
"""Names of the shipped profiles, folders of workflow/profiles."""
LOCAL = ("default", "slurm-pilot")
"""Profiles whose jobs run on this machine, and which need a number of cores."""
PLAIN = frozenset({"-n", "--dry-run", "--dryrun", "--summary", "--dag", "--rulegraph", "--lint"})
"""Options of Snakemake that ask for its own output."""
REFRESH_SECONDS = 15.0
"""Pause between two estimates of the time left."""


def add_commands(commands: Any) -> None:
    """Add the command ``run``."""
    command = add_command(commands, "run", run_from_command_line, config=False, light=True)

    command.add_argument(
        "study", metavar="STUDY", nargs="?", help="run the study of this config file"
    )
    what = "run the study of this config file, like STUDY (default: config.yaml)"
    command.add_argument("--config", "--configfile", metavar="FILE", help=what)
    add_set_option(command)
    add_number(command, "--cores", "use at most N CPU cores (default: all)")
    add_number(command, "--gpus", "run N GPU jobs in parallel (default: one per GPU)")
    shipped = ", ".join(PROFILES)
    what = f"use this Snakemake profile: {shipped}, or the folder of another (default: default)"
    add_option(command, "--profile", "P", what, default="default")
    add_flag(command, "--verbose", "show Snakemake's own output instead of the progress line")


@dataclass(frozen=True)
class Request:
    """A request to run a study.

    Attributes:
        config: path of the config file.
        changes: values of ``--set``, as a nested mapping.
        cores: number of CPU cores, None for all.
        gpus: number of GPU jobs that run in parallel, None for no limit.
        profile: name of a shipped profile, or folder of another Snakemake profile.
        options: further options of Snakemake.
        verbose: show Snakemake's own output.
    """

    config: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    cores: int | None = None
    gpus: int | None = None
    profile: str = "default"
    options: Sequence[str] = ()
    verbose: bool = False


def run_from_command_line(args: argparse.Namespace) -> None:
    """Run a whole study with Snakemake and write its report, or resume a stopped study."""
    from tasktransfer import designs
    from tasktransfer.cli.options import parse_overrides

    if args.study and args.config and args.study != args.config:
        raise ConfigError(
            f"--config {args.config}: The command also specifies the study {args.study}. Specify "
            "only one study."
        )
    config = args.study or args.config or "config.yaml"
    options, plain = args.snakemake_options, bool(PLAIN & set(args.snakemake_options))
    request = Request(
        *(config, parse_overrides(args), args.cores, args.gpus, args.profile, options),
        verbose=args.verbose or plain,
    )
    study = run_study(request)
    if not plain:
        design = designs.get_design(study.config)
        print(format_output_paths(study, design), end="")
        for sentence in design.advice(study):
            print(escape_line(sentence))
        for warning in design.warnings(study):
            print(f"warning: {escape_line(warning)}", file=sys.stderr)


def run_study(request: Request) -> Study:
    """Run a study with Snakemake.

    Raises:
        ConfigError: the config is not valid, or the profile does not exist.
        TaskTransferError: Snakemake failed; the message names the failed jobs.
    """
    from tasktransfer import designs

    study = designs.open_study(request.config, request.changes, need_inputs=False)
    words = build_snakemake_arguments(request)
    failures: Sequence[str] = ()
    if request.verbose:
        code = call_snakemake(words)
    else:
        is_local = request.profile in LOCAL
        forecast = forecast_study(study, request.cores, request.gpus) if is_local else None
        code, failures = follow_snakemake(words, study, forecast)
    if code:
        listed = "".join(f"\n{line}" for line in failures)
        raise TaskTransferError(
            f"{request.config}: Snakemake ended with exit code {code}. Finished results are "
            f"kept. Fix the cause and run the same command again.{listed}"
        )
    return study


def build_snakemake_arguments(request: Request) -> list[str]:
    """Return the command-line arguments of Snakemake for a study.

    Raises:
        ConfigError: the profile does not exist.
    """
    shipped = WORKFLOW / "profiles" / request.profile
    profile = shipped if request.profile in PROFILES else Path(request.profile)
    if not profile.is_dir():
        raise ConfigError(
            f"--profile {request.profile}: The folder does not exist. Choose one of "
            f"{', '.join(PROFILES)}, or specify the folder of a Snakemake profile, which contains "
            "a config.yaml."
        )
    # A Snakefile in the current folder may add rules to those of the package.
    words = [] if Path("Snakefile").is_file() else ["--snakefile", str(WORKFLOW / "Snakefile")]
    words += ["--configfile", request.config, "--workflow-profile", str(profile)]
    if request.cores or request.profile in LOCAL:
        words += ["--cores", str(request.cores or "all")]
    if request.gpus:
        words += ["--resources", f"gpu={request.gpus}"]
    if request.changes:
        texts = (f"{key}={json.dumps(value)}" for key, value in request.changes.items())
        words += ["--config", *texts]
    return [*words, *request.options]


def call_snakemake(words: Sequence[str], folder: Path = Path()) -> int:
    """Run Snakemake, pass its output through unchanged, and return its exit code."""
    command = [sys.executable, "-P", "-m", "snakemake", *words]
    child = subprocess.Popen(command, cwd=folder, env=build_job_environment())
    with forward_sigterm(child):
        return child.wait()


@contextmanager
def forward_sigterm(child: subprocess.Popen[Any]) -> Iterator[None]:
    """Interrupt Snakemake and its jobs if this process receives SIGTERM, and wait for them.

    SIGTERM reaches this process alone. Processes that a shell script started in the background
    ignore SIGINT, so they are sent SIGTERM instead. Snakemake is signalled first, because it would
    otherwise start the interrupted jobs again.

    Raises:
        KeyboardInterrupt: the signal arrived.
    """
    import psutil  # Snakemake's

    ignores_sigint = signal.getsignal(signal.SIGINT) == signal.SIG_IGN

    def interrupt(number: int, frame: Any) -> None:
        with suppress(psutil.Error):
            snakemake = psutil.Process(child.pid)
            for process in (snakemake, *snakemake.children(recursive=True)):
                with suppress(psutil.Error):
                    process.send_signal(signal.SIGTERM if ignores_sigint else signal.SIGINT)
        raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, interrupt) if is_main else None
    try:
        yield
    except KeyboardInterrupt:
        child.wait()
        raise
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)


def build_job_environment() -> dict[str, str]:
    """Return the environment variables of jobs, with ``tasktransfer`` on the PATH."""
    if shutil.which("tasktransfer"):
        return dict(os.environ)
    path = f"{os.environ.get('PATH', '')}{os.pathsep}{Path(sys.executable).parent}"
    return {**os.environ, "PATH": path}


def format_output_paths(study: Study, design: Design) -> str:
    """Format the paths of the study's existing report, figures and tables as lines."""
    from tasktransfer.designs.outputs import list_outputs

    outputs = list_outputs(design, study)
    places = {
        "report:": study.report if outputs.report else None,
        "figures:": study.figures if outputs.figures else None,
        "tables:": study.tables if outputs.tables else None,
    }
    return "".join(
        f"{name:9}{place}\n" for name, place in places.items() if place and Path(place).exists()
    )


# --- Snakemake's output as one line -------------------------------------------------------------

_STEPS = re.compile(r"^(\d+) of (\d+) steps \(")
_TOTAL = re.compile(r"^total +(\d+)$")
_STARTED = re.compile(r"^Job (\d+): ")
_JOB = re.compile(r"^ +jobid: (\d+)")
_ENDED = re.compile(r"^Finished jobid: (\d+)")
_FAILED = re.compile(r"^Error in rule (\w+):")
_RAISED = re.compile(r"^\w*(Error|Exception)( in .*)?:")
_LOG = re.compile(r"^\s+log: (.+?)(?: \(check .+\))?$")
_RULE = re.compile(r"^(?:local)?(?:rule|checkpoint) \w+:$")


@dataclass
class Progress:
    """Number of finished, running and failed jobs, read from Snakemake's output line by line."""

    done: int = 0
    total: int = 0
    running: set[str] = field(default_factory=set)
    failed: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Number of a job that failed and has not succeeded since → its rule and log file."""
    errors: list[str] = field(default_factory=list)
    """Output before the first job, or Snakemake's own error; explains a failure without a job."""
    _block: str = ""
    _failing: tuple[str, str] = ("", "")
    """Number and rule of the job in the current error block."""

    def read_line(self, line: str) -> None:
        """Update the progress from a line of Snakemake's output."""
        if match := _STEPS.match(line):
            self.done, self.total = int(match[1]), int(match[2])
        elif match := _TOTAL.match(line):
            self.total, self._block = int(match[1]), "jobs"
        elif match := _STARTED.match(line):
            self.running.add(match[1])
        elif match := _ENDED.match(line):
            self.running.discard(match[1])
            self.failed.pop(match[1], None)
        elif match := _FAILED.match(line):
            self._block, self._failing = "error", ("", match[1])
        elif _RAISED.match(line):
            self.errors, self._block = [line], ""
        elif _RULE.match(line):
            self._block = "rule"
        elif (match := _JOB.match(line)) and self._block == "rule":
            self.running.add(match[1])
        elif match and self._block == "error":
            self.running.discard(match[1])
            self._failing = (match[1], self._failing[1])
            self.failed[match[1]] = (self._failing[1], "")
        elif self._block == "error" and (match := _LOG.match(line)):
            job, rule = self._failing
            self.failed[job] = (rule, match[1])
        elif not self._block and line.strip():
            self.errors.append(line)

    def describe(self, elapsed: float, left: float | None) -> str:
        """Describe the progress in one line.

        Args:
            elapsed: elapsed time in seconds.
            left: remaining time in seconds, None if unknown.
        """
        if not self.total:
            return f"{len(self.running)} running" if self.running else "planning jobs"
        share = 100 * self.done // self.total
        time_left = "" if left is None else f", about {format_clock_time(left)} left"
        return (
            f"{self.done:,} of {self.total:,} jobs done ({share} %), {len(self.running)} running, "
            f"{len(self.failed)} failed, {format_clock_time(elapsed)} elapsed{time_left}"
        )

    def list_failures(self) -> list[str]:
        """Return one line per failed job, with the last error in its log.

        If no job has failed, return the last lines of Snakemake's own error or of its output.
        """
        if not self.failed:
            return [*dict.fromkeys(self.errors[-10:])]
        lines = []
        for rule, log in self.failed.values():
            error = read_last_error(Path(log)) if log else None
            lines.append(f"{rule}: {error or 'see the log'}" + (f"\n    {log}" if log else ""))
        return lines


def follow_snakemake(
    words: Sequence[str], study: Study, forecast: Forecast | None = None
) -> tuple[int, list[str]]:
    """Run Snakemake, and show its progress in one line on standard error.

    Args:
        forecast: forecast of the wall time, which is printed first, and compared at the end.

    Returns:
        Snakemake's exit code, and one line per failed job.
    """
    if forecast is not None:
        print(forecast, file=sys.stderr, flush=True)
    progress, began = Progress(), time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "snakemake", *words],
        env=build_job_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert child.stdout is not None
    line, left = StatusLine(escape_line(study.config.study)), TimeLeft(study, forecast)
    try:
        with forward_sigterm(child):
            for text in _stream_lines_or_ticks(child.stdout):
                if text is not None:
                    progress.read_line(text.rstrip("\n"))
                elapsed = time.monotonic() - began
                line.show(progress.describe(elapsed, left.estimate_seconds(progress)))
            code = child.wait()
    finally:
        line.end(progress.describe(time.monotonic() - began, None) if progress.total else "")
    if forecast is not None and not code:
        print(forecast.format_comparison(time.monotonic() - began), file=sys.stderr)
    return code, progress.list_failures() if code else []


def _stream_lines_or_ticks(stream: IO[str]) -> Iterator[str | None]:
    """Yield the lines of a stream, and None for each second without a line."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for text in stream:
            lines.put(text)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            text = lines.get(timeout=1.0)
        except queue.Empty:
            yield None
            continue
        if text is None:
            return
        yield text


class TimeLeft:
    """An estimate of a study's remaining time, updated every few seconds while nodes are left."""

    def __init__(self, study: Study, forecast: Forecast | None = None) -> None:
        self._study = study
        self._watcher: Any = None
        self._read = time.monotonic()
        self._due = self._read + REFRESH_SECONDS
        self._left = None if forecast is None else 3600 * forecast.hours

    def estimate_seconds(self, progress: Progress) -> float | None:
        """Estimate the remaining seconds, or return None if they are unknown."""
        now = time.monotonic()
        if now >= self._due and progress.running:
            from tasktransfer.operate.overview import WORKFLOW_SECONDS
            from tasktransfer.operate.status import ProgressWatcher

            if self._watcher is None and not self._study.has_unknown_inputs:
                self._watcher = ProgressWatcher(self._study)
            left = self._watcher.get_progress()["seconds_left"] if self._watcher else None
            seen = time.monotonic()
            if left:  # tables, figures and report follow
                self._left, self._read = left + WORKFLOW_SECONDS, seen
            # Looking at thousands of folders takes seconds: spend at most 1/20 of the time on it.
            self._due = seen + max(REFRESH_SECONDS, 20 * (seen - now))
        left = 0.0 if self._left is None else self._left - (now - self._read)
        return left if left > 0 else None
