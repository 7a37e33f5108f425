"""Commands of the panel study: its metric for anybody's responses, and pairs that want labels."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import add_command, add_out, add_threads, open_study_of, option
from tasktransfer.results.study import Study


def add_commands(commands: Any) -> None:
    """``rate`` and ``pairs``."""
    command = add_command(commands, "rate", rate)
    what = 'JSONL: {"context": [texts], "response": text} a line, and "domain" if it is known'
    option(command, "pairs", "PAIRS", what, type=Path)
    option(command, "--seed", "N", "the seed whose experts rate (default: the first)", type=int)
    add_threads(command)
    command = add_command(commands, "pairs", pairs)
    add_out(command, "write <domain>.jsonl there, for pairs.labels: given")


def rate(chosen: argparse.Namespace) -> None:
    """Rate how well responses fit their contexts with a trained panel, as JSONL on stdout."""
    from tasktransfer.designs.panel.rate import rate as rated

    study = _of_the_panel(chosen)
    for row in rated(study, chosen.pairs, chosen.seed, chosen.threads):
        sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")


def pairs(chosen: argparse.Namespace) -> None:
    """Write the training pairs of a panel study before they are labelled."""
    from tasktransfer.designs.panel.rate import write_pairs

    for file in write_pairs(_of_the_panel(chosen), chosen.out):
        print(file)


def _of_the_panel(chosen: argparse.Namespace) -> Study:
    return open_study_of("panel", "only a panel has experts that rate", chosen)
