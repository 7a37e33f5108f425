"""The command that trains one stage. It takes its device before torch is imported."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tasktransfer.cli.options import (
    add_command,
    add_out,
    add_threads,
    overrides,
    positive,
    read_json,
)
from tasktransfer.errors import ConfigError

if TYPE_CHECKING:
    from tasktransfer.core.stage import Stage


def add_commands(commands: Any) -> None:
    """``train``."""
    command = add_command(commands, "train", train)
    command.add_argument(
        "--stage", metavar="JSON", required=True, help="the stage as JSON, or @file"
    )
    command.add_argument(
        "--run",
        metavar="JSON",
        help="the run that it scores, as JSON, or @file, or null (default: read off the stage)",
    )
    command.add_argument(
        "--encoded", metavar="DIR", type=Path, required=True, help="folder of the token ids"
    )
    command.add_argument(
        "--start", metavar="CHECKPOINT", required=True, help="folder or hub name to start from"
    )
    command.add_argument("--revision", metavar="NAME", help="revision of a hub name")
    add_out(command, "folder of record, predictions and checkpoint")
    command.add_argument(
        "--save-checkpoint", action="store_true", help="write the best epoch's weights"
    )
    command.add_argument(
        "--attempt",
        metavar="N",
        type=positive,
        default=1,
        help="which attempt this is; from the second on, an error of the input that ended the "
        "last one ends this one at once (default: %(default)s)",
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
    from tasktransfer.core.stage_json import stage_of
    from tasktransfer.datasets import DATASETS
    from tasktransfer.designs import load_config
    from tasktransfer.designs.transfer.config import TransferConfig
    from tasktransfer.training.attempt import attempt
    from tasktransfer.training.job import Job

    config = cast(TransferConfig, load_config(chosen.config, overrides(chosen)))
    stage = stage_of(read_json("--stage", chosen.stage), "--stage", DATASETS)
    job = Job(
        stage=stage,
        run=_run(chosen.run, stage),
        encoded=chosen.encoded,
        start=chosen.start,
        revision=chosen.revision,
        out=chosen.out,
        save_checkpoint=chosen.save_checkpoint,
        threads=chosen.threads,
        study=config.study,
        config_digest=config.digest,
        rules=config.rules,
        plain=chosen.plain,
    )
    attempt(job, chosen.attempt)


def _run(text: str | None, stage: Stage) -> dict[str, Any] | None:
    """The run that a stage scores: read off the stage, or as ``--run`` tells it."""
    from tasktransfer.designs.transfer.plan import run_of
    from tasktransfer.results.records import run_problem

    if text is None:
        run = run_of(stage)
        return run.identity if run else None
    value = read_json("--run", text)
    problem = None if value is None else run_problem(value)
    if problem:
        raise ConfigError(f"--run: no run: {problem}; give dataset, model, algorithm, ... or null")
    return cast("dict[str, Any] | None", value)
