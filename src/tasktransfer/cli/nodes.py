"""Commands that run one node of a study. ``train`` leases its device before it imports torch."""

from __future__ import annotations

import argparse
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_option,
    add_threads_option,
    find_node,
    open_design,
)


def add_commands(commands: Any) -> None:
    """Add the commands ``train``, ``derive``, ``fit`` and ``evaluate``."""
    for name, function in (
        ("train", train_stage),
        ("derive", derive_data),
        ("fit", fit_classifiers),
        ("evaluate", evaluate_node),
    ):
        command = add_command(commands, name, function)
        what = "run the node whose digest begins with these 12 hexadecimal digits"
        add_option(command, "--node", "DIGEST", what, required=True)
        if name == "train":
            what = (
                "train with padded batches and the attention, dropout and generation of "
                "transformers, as a reference for the fast code paths; results differ only by "
                "rounding and dropout masks"
            )
            add_flag(command, "--plain", what)
        add_threads_option(command)


def train_stage(args: argparse.Namespace) -> None:
    """Train one stage and write its record."""
    from tasktransfer.core.nodes import Stage
    from tasktransfer.jobs import train_job

    study, design = open_design(args)
    stage = find_node(study, args.node, Stage)
    train_job.train(study, stage, design, args.threads, plain=args.plain)


def derive_data(args: argparse.Namespace) -> None:
    """Build derived data by its recipe."""
    from tasktransfer.core.nodes import Data
    from tasktransfer.jobs import node_jobs

    study, design = open_design(args)
    data = find_node(study, args.node, Data)
    node_jobs.derive_data(study, data, design)


def fit_classifiers(args: argparse.Namespace) -> None:
    """Fit classifiers with a library, and score them."""
    from tasktransfer.core.nodes import Fit
    from tasktransfer.jobs import node_jobs

    study, design = open_design(args)
    node_jobs.fit_node(study, find_node(study, args.node, Fit), design)


def evaluate_node(args: argparse.Namespace) -> None:
    """Score a model or a fit on one split of a task."""
    from tasktransfer.core.nodes import Evaluation
    from tasktransfer.jobs import node_jobs

    study, design = open_design(args)
    node = find_node(study, args.node, Evaluation)
    node_jobs.evaluate_node(study, node, design, args.threads)
