"""Commands that run one node of a study. ``train`` leases its device before it imports torch."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_option,
    add_out,
    add_repeated,
    add_threads,
    find_node,
    open_design,
    parse_overrides,
    read_json,
)
from tasktransfer.errors import ConfigError


def add_commands(commands: Any) -> None:
    """Add ``train``, ``derive``, ``fit`` and ``evaluate``."""
    command = add_command(commands, "train", train)
    add_option(command, "--stage", "JSON", "the stage as JSON, or @file", required=True)
    add_option(command, "--encoded", "DIR", "folder of the token ids", type=Path, required=True)
    what = "folder or hub name of the base model"
    add_option(command, "--base", "CHECKPOINT", what, required=True)
    add_option(command, "--revision", "NAME", "revision of a hub name")
    what = "second encoder, which reads the input next to the model, if any"
    add_option(command, "--beside", "CHECKPOINT", what)
    what = "checkpoint of a stage that this stage starts from, in the stage's order"
    add_repeated(command, "--start", "DIR", what)
    add_out(command, "folder for record, predictions and checkpoint")
    what = "save the weights of the best round (an epoch or evaluation step)"
    add_flag(command, "--save-checkpoint", what)
    what = (
        "use padded batches, and attention, dropout and generation of transformers: the "
        "reference for the fast paths, with equal results except for rounding and dropout masks"
    )
    add_flag(command, "--plain", what)
    add_threads(command)
    for name, function in (("derive", derive), ("fit", fit), ("evaluate", evaluate)):
        command = add_command(commands, name, function)
        what = "first 12 digits of the node's digest"
        add_option(command, "--node", "DIGEST", what, required=True)
        add_threads(command)


def train(chosen: argparse.Namespace) -> None:
    """Train one stage and write its record."""
    from tasktransfer.core.node_json import from_json
    from tasktransfer.core.nodes import Stage
    from tasktransfer.datasets import get_card_digests
    from tasktransfer.designs import get_design, load_config
    from tasktransfer.training.attempt import train_if_needed
    from tasktransfer.training.job import Job

    config = load_config(chosen.config, parse_overrides(chosen))
    stage = from_json(Stage, read_json("--stage", chosen.stage), "--stage", get_card_digests)
    design = get_design(config)
    others = sum(start.stage is not None for start in stage.starts)
    if len(chosen.start) != others:
        raise ConfigError(
            f"--start: The option names {len(chosen.start)} folders, but the stage starts "
            f"from {others} other stages. Name one folder per start, in the stage's order."
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
        beside=chosen.beside,
        facts=design.facts(config),
        stand_ins=design.stand_ins(config),
        plain=chosen.plain,
        tracking=config.tracking,
        tracking_folder=str(Path(config.results) / "tracking"),
    )
    train_if_needed(job)


def derive(chosen: argparse.Namespace) -> None:
    """Build derived data by its recipe."""
    from tasktransfer.core.nodes import Data
    from tasktransfer.jobs import node_jobs

    study, design = open_design(chosen)
    data = find_node(study, chosen.node, Data)
    node_jobs.derive(study, data, design)


def fit(chosen: argparse.Namespace) -> None:
    """Fit classifiers with a library, and score them."""
    from tasktransfer.core.nodes import Fit
    from tasktransfer.jobs import node_jobs

    study, design = open_design(chosen)
    node_jobs.fit(study, find_node(study, chosen.node, Fit), design)


def evaluate(chosen: argparse.Namespace) -> None:
    """Score a model or a fit on one split of a task."""
    from tasktransfer.core.nodes import Evaluation
    from tasktransfer.jobs import node_jobs

    study, design = open_design(chosen)
    node = find_node(study, chosen.node, Evaluation)
    node_jobs.evaluate(study, node, design, chosen.threads)
