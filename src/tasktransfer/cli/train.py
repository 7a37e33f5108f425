"""The command that trains one stage. It takes its device before torch is imported."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_out,
    add_threads,
    overrides,
    read_json,
)
from tasktransfer.errors import ConfigError


def add_commands(commands: Any) -> None:
    """``train``."""
    command = add_command(commands, "train", train)
    command.add_argument(
        "--stage", metavar="JSON", required=True, help="the stage as JSON, or @file"
    )
    command.add_argument(
        "--encoded", metavar="DIR", type=Path, required=True, help="folder of the token ids"
    )
    command.add_argument(
        "--base", metavar="CHECKPOINT", required=True, help="folder or hub name of the base model"
    )
    command.add_argument("--revision", metavar="NAME", help="revision of a hub name")
    command.add_argument(
        "--start",
        metavar="DIR",
        action="append",
        default=[],
        help="checkpoint of a stage that this one starts from; repeatable, in the stage's order",
    )
    add_out(command, "folder of record, predictions and checkpoint")
    command.add_argument(
        "--save-checkpoint", action="store_true", help="write the best epoch's weights"
    )
    command.add_argument(
        "--plain",
        action="store_true",
        help="padded rows, and attention, dropout and generation as transformers has them: the "
        "reference for the fast paths, same result but for rounding and dropout's draws",
    )
    add_threads(command)


def train(chosen: argparse.Namespace) -> None:
    """Train one stage and write its record."""
    from tasktransfer.core.node_json import from_json
    from tasktransfer.core.nodes import Stage
    from tasktransfer.designs import design_of, load_config
    from tasktransfer.training.attempt import attempt
    from tasktransfer.training.job import Job

    config = load_config(chosen.config, overrides(chosen))
    stage = from_json(Stage, read_json("--stage", chosen.stage), "--stage")
    others = sum(start.stage is not None for start in stage.starts)
    if len(chosen.start) != others:
        raise ConfigError(
            f"--start: found {len(chosen.start)} folders, the stage starts from "
            f"{len(stage.starts)} others; give one for each, in its order"
        )
    job = Job(
        stage=stage,
        encoded=chosen.encoded,
        base=chosen.base,
        starts=tuple(chosen.start),
        revision=chosen.revision,
        out=chosen.out,
        save_checkpoint=chosen.save_checkpoint,
        threads=chosen.threads,
        study=config.study,
        config_digest=config.digest,
        facts=design_of(config).facts(config),
        plain=chosen.plain,
    )
    attempt(job)
