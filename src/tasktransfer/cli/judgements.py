"""The command that sums up human judgements of replies."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import add_command, add_out, option
from tasktransfer.errors import ConfigError


def add_commands(commands: Any) -> None:
    """``judgements``."""
    command = add_command(commands, "judgements", judgements, config=False)
    what = "CSV: model, instance, rater, empathy, relevance, fluency (1 to 5)"
    option(command, "--ratings", "FILE", what, type=Path)
    what = "CSV: first, second, instance, rater, choice (first, second, equal or neither)"
    option(command, "--choices", "FILE", what, type=Path)
    add_out(command, "write means with standard errors, ratios and their figure there")


def judgements(chosen: argparse.Namespace) -> None:
    """Sum up human ratings and pairwise choices of replies, as Table 3 and Figure 5 of the
    empathetic study do."""
    from tasktransfer.designs.empathetic.human import sum_up

    if chosen.ratings is None and chosen.choices is None:
        raise ConfigError("nothing to sum up: give --ratings, --choices, or both")
    for file in sum_up(chosen.ratings, chosen.choices, chosen.out):
        print(file)
