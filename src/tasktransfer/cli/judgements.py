"""The command ``judgements``, which summarises human judgements of replies."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import add_command, add_option, add_out
from tasktransfer.errors import ConfigError


def add_commands(commands: Any) -> None:
    """Add ``judgements``."""
    command = add_command(commands, "judgements", judgements, config=False)
    what = "CSV file: model, instance, rater, empathy, relevance, fluency (1 to 5)"
    add_option(command, "--ratings", "FILE", what, type=Path)
    what = "CSV file: first, second, instance, rater, choice (first, second, equal or neither)"
    add_option(command, "--choices", "FILE", what, type=Path)
    add_out(command, "folder for means with standard errors, ratios with a figure, and agreement")


def judgements(chosen: argparse.Namespace) -> None:
    """Summarise human ratings and pairwise choices of replies (Table 3, Figure 5)."""
    from tasktransfer.designs.empathetic.human import sum_up

    if chosen.ratings is None and chosen.choices is None:
        raise ConfigError(
            "--ratings, --choices: At least one of the two options is required. Add one."
        )
    files = sum_up(chosen.ratings, chosen.choices, chosen.out)
    for file in files:
        print(file)
    if chosen.out / "agreement.csv" not in files:
        print("No agreement.csv: krippendorff is not installed. Install tasktransfer[agreement].")
