"""Commands that look at a study before anything runs."""

from __future__ import annotations

import argparse
import json
from typing import Any

from tasktransfer.cli.options import add_command, open_study, overrides


def add_commands(commands: Any) -> None:
    """``plan`` and ``validate``."""
    command = add_command(commands, "plan", plan)
    command.add_argument("--json", action="store_true", help="print JSON")
    add_command(commands, "validate", validate)


def plan(chosen: argparse.Namespace) -> None:
    """Count what a study amounts to."""
    from tasktransfer.overview import as_text, overview

    seen = overview(open_study(chosen, need_inputs=False))
    print(json.dumps(seen, indent=2) if chosen.json else as_text(seen), end="\n" * chosen.json)


def validate(chosen: argparse.Namespace) -> None:
    """Check a config file; all of its problems are told at once."""
    from tasktransfer.config import load

    config = load(chosen.config, overrides(chosen))
    print(f"{chosen.config}: ok, study {config.study}")
