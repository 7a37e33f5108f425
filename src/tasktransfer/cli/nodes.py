"""Commands that run one node of a study. ``train`` leases its device before it imports torch."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_option,
    add_out_option,
    add_repeated,
    add_threads_option,
    find_node,
    open_design,
    parse_overrides,
    read_json,
)
from tasktransfer.errors import ConfigError


def add_commands(commands: Any) -> None:
    """Add ``train``, ``derive``, ``fit`` and ``evaluate``."""
    command = add_command(commands, "train", train_stage)
    add_option(
        command,
        "--stage",
        "JSON",
        "train the stage that this JSON text, or @file, describes",
        required=True,
    )
    add_option(
        command,
        "--encoded",
        "DIR",
        "read token ids from this folder, which `encode` wrote",
        type=Path,
        required=True,
    )
    what = "start from this base model: a folder or a name on the Hugging Face Hub"
    add_option(command, "--base", "CHECKPOINT", what, required=True)
    add_option(command, "--revision", "NAME", "use this revision of a base model on the Hub")
    what = "read each input with this second encoder too (default: none)"
    add_option(command, "--beside", "CHECKPOINT", what)
    what = "start from this checkpoint of another stage, in the order that the stage names them"
    add_repeated(command, "--start", "DIR", what)
    add_out_option(command, "write record, predictions and checkpoint into this folder")
    what = "save the weights of the best round, which is an epoch or a number of updates"
    add_flag(command, "--save-checkpoint", what)
    what = (
        "train with padded batches and the attention, dropout and generation of transformers, as a "
        "reference for the fast code paths; results differ only by rounding and dropout masks"
    )
    add_flag(command, "--plain", what)
    add_threads_option(command)
    for name, function in (
        ("derive", derive_data),
        ("fit", fit_classifiers),
        ("evaluate", evaluate_node),
    ):
        command = add_command(commands, name, function)
        what = "run the node whose digest begins with these 12 hexadecimal digits"
        add_option(command, "--node", "DIGEST", what, required=True)
        add_threads_option(command)


def train_stage(args: argparse.Namespace) -> None:
    """Train one stage and write its record."""
    from tasktransfer.core.node_json import from_json
    from tasktransfer.core.nodes import Stage
    from tasktransfer.datasets import get_card_digests
    from tasktransfer.designs import get_design, load_config
    from tasktransfer.training.attempt import train_if_needed
    from tasktransfer.training.job import Job

    config = load_config(args.config, parse_overrides(args))
    stage = from_json(Stage, read_json("--stage", args.stage), "--stage", get_card_digests)
    design = get_design(config)
    others = sum(start.stage is not None for start in stage.starts)
    if len(args.start) != others:
        raise ConfigError(
            f"--start: The option names {len(args.start)} folders, but the stage starts "
            f"from {others} other stages. Name one folder per start, in the stage's order."
        )
    job = Job(
        stage=stage,
        encoded=args.encoded,
        base=args.base,
        starts=tuple(args.start),
        revision=args.revision,
        out=args.out,
        save_checkpoint=args.save_checkpoint,
        threads=args.threads,
        study=config.study,
        config_digest=config.digest,
        beside=args.beside,
        facts=design.facts(config),
        stand_ins=design.stand_ins(config),
        plain=args.plain,
        tracking=config.tracking,
        tracking_folder=str(Path(config.results) / "tracking"),
    )
    train_if_needed(job)


def derive_data(args: argparse.Namespace) -> None:
    """Build derived data by its recipe."""
    from tasktransfer.core.nodes import Data
    from tasktransfer.jobs import node_jobs

    study, design = open_design(args)
    data = find_node(study, args.node, Data)
    node_jobs.derive(study, data, design)


def fit_classifiers(args: argparse.Namespace) -> None:
    """Fit classifiers with a library, and score them."""
    from tasktransfer.core.nodes import Fit
    from tasktransfer.jobs import node_jobs

    study, design = open_design(args)
    node_jobs.fit(study, find_node(study, args.node, Fit), design)


def evaluate_node(args: argparse.Namespace) -> None:
    """Score a model or a fit on one split of a task."""
    from tasktransfer.core.nodes import Evaluation
    from tasktransfer.jobs import node_jobs

    study, design = open_design(args)
    node = find_node(study, args.node, Evaluation)
    node_jobs.evaluate(study, node, design, args.threads)
