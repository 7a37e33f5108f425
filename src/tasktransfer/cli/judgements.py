"""The command ``judgements``, which summarises human judgements of replies."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import add_command, add_option, add_out_option
from tasktransfer.errors import ConfigError


def add_commands(commands: Any) -> None:
    """Add the command ``judgements``."""
    command = add_command(commands, "judgements", summarise_judgements, config=False)
    what = (
        "read ratings from a CSV file: model, instance, rater, empathy, relevance, fluency (1 to 5)"
    )
    add_option(command, "--ratings", "FILE", what, type=Path)
    what = (
        "read choices from a CSV file: first, second, instance, rater, choice (first, second, "
        "equal or neither)"
    )
    add_option(command, "--choices", "FILE", what, type=Path)
    what = "write means with standard errors, ratios with a figure, and agreement into this folder"
    add_out_option(command, what)


def summarise_judgements(args: argparse.Namespace) -> None:
    """Summarise human ratings and pairwise choices of replies (Table 3, Figure 5)."""
    from tasktransfer.designs.empathetic.judgement_files import write_summary

    if args.ratings is None and args.choices is None:
        raise ConfigError(
            "--ratings, --choices: Neither option is given. Add at least one of the two options."
        )
    files = write_summary(args.ratings, args.choices, args.out)
    for file in files:
        print(file)
    if args.out / "agreement.csv" not in files:
        print(
            "agreement.csv was not written, because the package krippendorff is missing. Run `pip "
            "install 'tasktransfer[agreement]'`."
        )
