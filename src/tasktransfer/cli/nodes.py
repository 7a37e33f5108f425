"""Commands that make one node of a study which is no training."""

from __future__ import annotations

import argparse
from typing import Any

from tasktransfer.cli.options import add_command, add_threads, node_of, open_study


def add_commands(commands: Any) -> None:
    """``derive``, ``fit`` and ``evaluate``."""
    for name, function in (("derive", derive), ("fit", fit), ("evaluate", evaluate)):
        command = add_command(commands, name, function)
        command.add_argument(
            "--node", metavar="DIGEST", required=True, help="the node, by 12 digits of its digest"
        )
        add_threads(command)


def derive(chosen: argparse.Namespace) -> None:
    """Derive data by its recipe."""
    from tasktransfer.core.nodes import Data
    from tasktransfer.designs import design_of
    from tasktransfer.jobs import node_jobs

    study = open_study(chosen)
    design = design_of(study.config)
    data = node_of(study, chosen.node, Data)
    node_jobs.derive(study, data, design.recipes, design.learners)


def fit(chosen: argparse.Namespace) -> None:
    """Fit classifiers by a library, and score them."""
    from tasktransfer.core.nodes import Fit
    from tasktransfer.designs import design_of
    from tasktransfer.jobs import node_jobs

    study = open_study(chosen)
    node = node_of(study, chosen.node, Fit)
    node_jobs.fit(study, node, design_of(study.config).learners)


def evaluate(chosen: argparse.Namespace) -> None:
    """Measure an outcome or a fit on a split of a task."""
    from tasktransfer.core.nodes import Evaluation
    from tasktransfer.designs import design_of
    from tasktransfer.jobs import node_jobs

    study = open_study(chosen)
    node = node_of(study, chosen.node, Evaluation)
    node_jobs.evaluate(study, node, design_of(study.config).learners, chosen.threads)
