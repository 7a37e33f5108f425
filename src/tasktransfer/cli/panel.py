"""Commands of the panel study: rate any responses, and write training pairs for labelling."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.options import (
    add_command,
    add_option,
    add_out_option,
    add_threads_option,
    open_study_with_design,
)
from tasktransfer.files import json_text

if TYPE_CHECKING:
    from tasktransfer.results.study import Study


def add_commands(commands: Any) -> None:
    """Add the commands ``rate`` and ``pairs``."""
    command = add_command(commands, "rate", rate_responses)
    what = (
        'rate the lines of this JSONL file: {"context": [texts], "response": text}, also "domain"'
    )
    add_option(command, "pairs", "PAIRS", what, type=Path)
    add_option(
        command, "--seed", "N", "use the experts of seed N (default: the first seed)", type=int
    )
    add_threads_option(command)
    command = add_command(commands, "pairs", write_training_pairs)
    add_out_option(
        command,
        "write one <domain>.jsonl per domain into this folder, for use with pairs.labels: given",
    )


def rate_responses(args: argparse.Namespace) -> None:
    """Rate with a trained panel how well responses fit their contexts, and print JSONL."""
    from tasktransfer.designs.panel.rate import rate_pairs as rated
    from tasktransfer.training.device import lease_device, list_devices

    study = _open_panel_study(args)
    with lease_device(list_devices()):
        for row in rated(study, args.pairs, args.seed, args.threads):
            sys.stdout.write(f"{json_text.encode(row, ensure_ascii=False)}\n")


def write_training_pairs(args: argparse.Namespace) -> None:
    """Write the training pairs of a panel study before they are labelled."""
    from tasktransfer.designs.panel.rate import write_pairs

    for file in write_pairs(_open_panel_study(args), args.out):
        print(file)


def _open_panel_study(args: argparse.Namespace) -> Study:
    return open_study_with_design("panel", "only a panel has experts that rate", args)
