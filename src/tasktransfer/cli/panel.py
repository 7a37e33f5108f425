"""Commands of the panel study: rate any responses, and write training pairs for labelling."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.options import (
    add_command,
    add_option,
    add_out,
    add_threads,
    open_study_with_design,
)
from tasktransfer.files import json_text

if TYPE_CHECKING:
    from tasktransfer.results.study import Study


def add_commands(commands: Any) -> None:
    """Add ``rate`` and ``pairs``."""
    command = add_command(commands, "rate", rate)
    what = 'JSONL file: {"context": [texts], "response": text} per line, optionally "domain"'
    add_option(command, "pairs", "PAIRS", what, type=Path)
    add_option(command, "--seed", "N", "seed of the experts to use (default: the first)", type=int)
    add_threads(command)
    command = add_command(commands, "pairs", pairs)
    add_out(
        command, "folder for one <domain>.jsonl per domain, to be used with pairs.labels: given"
    )


def rate(chosen: argparse.Namespace) -> None:
    """Rate with a trained panel how well responses fit their contexts; print JSONL."""
    from tasktransfer.designs.panel.rate import rate as rated
    from tasktransfer.training.device import lease, list_devices

    study = _open_panel_study(chosen)
    with lease(list_devices()):
        for row in rated(study, chosen.pairs, chosen.seed, chosen.threads):
            sys.stdout.write(f"{json_text.encode(row, ensure_ascii=False)}\n")


def pairs(chosen: argparse.Namespace) -> None:
    """Write the training pairs of a panel study before they are labelled."""
    from tasktransfer.designs.panel.rate import write_pairs

    for file in write_pairs(_open_panel_study(chosen), chosen.out):
        print(file)


def _open_panel_study(chosen: argparse.Namespace) -> Study:
    return open_study_with_design("panel", "only a panel has experts that rate", chosen)
