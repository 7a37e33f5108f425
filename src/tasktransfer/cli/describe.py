"""Commands that look at a study before anything runs."""

from __future__ import annotations

import argparse
import json
from typing import Any, Literal

from tasktransfer.cli.options import add_command, open_study, overrides, positive

DEVICES: dict[str | None, Literal["cpu", "cuda"] | None] = {"cpu": "cpu", "gpu": "cuda", None: None}


def add_commands(commands: Any) -> None:
    """``plan`` and ``validate``."""
    command = add_command(commands, "plan", plan, light=True)
    command.add_argument(
        "--devices",
        metavar="N",
        type=positive,
        help="trainings side by side (default: the GPUs that are there, else the cores)",
    )
    command.add_argument(
        "--on",
        choices=("cpu", "gpu"),
        help="what it will run on (default: what its records were made on, else what is here)",
    )
    command.add_argument(
        "--calibrate",
        action="store_true",
        help="measure this machine for a second, where no record tells how fast it is",
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    add_command(commands, "validate", validate, light=True)


def plan(chosen: argparse.Namespace) -> None:
    """Count what a study amounts to, and estimate what it takes: hours, wall time, disk."""
    from tasktransfer.overview import overview
    from tasktransfer.overview_text import as_text

    study = open_study(chosen, need_inputs=False)
    calibration = None
    if chosen.calibrate:
        from tasktransfer.forecast.calibrate import calibrate

        calibration = calibrate(study)
    seen = overview(study, chosen.devices, calibration, DEVICES[chosen.on])
    print(json.dumps(seen, indent=2) if chosen.json else as_text(seen), end="\n" * chosen.json)


def validate(chosen: argparse.Namespace) -> None:
    """Check a config file; all of its problems are told at once."""
    from tasktransfer.config import load
    from tasktransfer.config.challenge import MEANING, OUT_OF_SCOPE

    config = load(chosen.config, overrides(chosen))
    print(f"{chosen.config}: ok, study {config.study}")
    if config.rules == "challenge":
        print(f"rules: challenge: {'; '.join(MEANING.values())}")
        print(OUT_OF_SCOPE)
