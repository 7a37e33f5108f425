"""Commands for people at a terminal: a check of the environment, and shell completion."""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_json_option,
    add_option,
    add_set_option,
    open_study,
)
from tasktransfer.cli.parsers import iterate_parsers, list_options
from tasktransfer.errors import TaskTransferError
from tasktransfer.files import json_text

SHELLS = ("bash", "zsh", "fish", "tcsh")
CONFIG = "config.yaml"
"""Config file that ``doctor`` checks without ``--config``, if it exists."""


def add_commands(commands: Any) -> None:
    """Add the commands ``doctor`` and ``completion``."""
    command = add_command(commands, "doctor", check_environment, config=False)
    what = f"check whether this study can run here (default: {CONFIG}, if it exists)"
    add_option(command, "--config", "FILE", what)
    add_set_option(command)
    add_json_option(command)
    command = add_command(commands, "completion", print_completion_script, config=False, light=True)
    command.add_argument("shell", choices=SHELLS, help="print the completion script for this shell")


class FailedCheckError(TaskTransferError):
    """A failed check; its exit code is that of the first failed check."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def check_environment(args: argparse.Namespace) -> None:
    """Check Python, torch, GPU, disk, locks and Snakemake, and report what is wrong or slow."""
    from tasktransfer.operate import doctor as health

    study, refused = None, []
    if args.config is not None or Path(CONFIG).is_file():
        args.config = args.config or CONFIG
        try:
            study = open_study(args, need_inputs=False)
        except TaskTransferError as error:
            refused = [health.build_unopened_study_check(error)]
    checks = []
    for check in chain(refused, health.run_checks(study, Path.cwd())):
        checks.append(check)
        if not args.json:
            print(health.format_check(check), flush=True)
    print(
        json_text.encode(health.as_json(checks), indent=2)
        if args.json
        else health.format_totals(checks)
    )
    if code := health.find_exit_code(checks):
        names = ", ".join(check.name for check in checks if check.state == "wrong")
        raise FailedCheckError(
            f"The checks of {names} failed. Follow the remedies that are printed above.", code
        )


def print_completion_script(args: argparse.Namespace) -> None:
    """Print a shell script that completes commands, options and files of tasktransfer."""
    import shtab

    parser = args.parser
    for action in (each for _, inner in iterate_parsers(parser) for each in list_options(inner)):
        kinds = {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY, "OTHER": shtab.FILE}
        if action.metavar in kinds:
            action.complete = kinds[action.metavar]  # type: ignore[attr-defined]
    print(shtab.complete(parser, args.shell), end="")
