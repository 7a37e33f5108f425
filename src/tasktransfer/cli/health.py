"""Commands for people at a terminal: a check of the environment, and shell completion."""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import add_command, add_json, add_option, add_set, open_study
from tasktransfer.cli.parsers import iterate_parsers, list_options
from tasktransfer.errors import TaskTransferError
from tasktransfer.files import json_text

SHELLS = ("bash", "zsh", "fish", "tcsh")
CONFIG = "config.yaml"
"""Config file that ``doctor`` checks without ``--config``, if it exists."""


def add_commands(commands: Any) -> None:
    """Add ``doctor`` and ``completion``."""
    command = add_command(commands, "doctor", doctor, config=False)
    what = f"config file of a study to run here (default: {CONFIG}, if it exists)"
    add_option(command, "--config", "FILE", what)
    add_set(command)
    add_json(command)
    command = add_command(commands, "completion", completion, config=False, light=True)
    command.add_argument("shell", choices=SHELLS, help="name of the shell to complete commands in")


class UnwellError(TaskTransferError):
    """A failed check; its exit code is that of the first failed check."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def doctor(chosen: argparse.Namespace) -> None:
    """Check Python, torch, GPU, disk, locks and Snakemake, and report what is wrong or slow."""
    from tasktransfer.operate import doctor as health

    study, refused = None, []
    if chosen.config is not None or Path(CONFIG).is_file():
        chosen.config = chosen.config or CONFIG
        try:
            study = open_study(chosen, need_inputs=False)
        except TaskTransferError as error:
            refused = [health.report_refused_study(error)]
    seen = []
    for check in chain(refused, health.run_checks(study, Path.cwd())):
        seen.append(check)
        if not chosen.json:
            print(health.format_check(check), flush=True)
    print(
        json_text.encode(health.as_json(seen), indent=2)
        if chosen.json
        else health.format_totals(seen)
    )
    if code := health.find_exit_code(seen):
        names = ", ".join(check.name for check in seen if check.state == "wrong")
        raise UnwellError(f"The checks of {names} failed. Follow the remedies above.", code)


def completion(chosen: argparse.Namespace) -> None:
    """Print a shell script that completes commands, options and files of tasktransfer."""
    import shtab

    parser = chosen.parser
    for action in (each for _, inner in iterate_parsers(parser) for each in list_options(inner)):
        kinds = {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY, "OTHER": shtab.FILE}
        if action.metavar in kinds:
            action.complete = kinds[action.metavar]  # type: ignore[attr-defined]
    print(shtab.complete(parser, chosen.shell), end="")
