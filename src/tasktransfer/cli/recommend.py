"""The command ``recommend``, which ranks the sources of a target."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_json_option,
    add_number,
    add_option,
    open_study_with_design,
    parse_overrides,
    print_result,
)
from tasktransfer.errors import TaskTransferError, escape_text

if TYPE_CHECKING:
    from tasktransfer.core.nodes import Node
    from tasktransfer.results.study import Study


def add_commands(commands: Any) -> None:
    """Add the command ``recommend``."""
    command = add_command(commands, "recommend", recommend_sources)
    add_option(
        command,
        "--target",
        "TASK",
        "rank the sources of this target task, DATASET/TASK or TASK",
        required=True,
    )
    what = "choose from these sources (default: all sources of the study)"
    add_option(command, "--sources", "TASK", what, nargs="+", default=[])
    what = (
        "spend at most HOURS on missing values that can change the ranking (default: %(default)s)"
    )
    add_option(command, "--hours", "HOURS", what, type=float, default=1.0)
    what = (
        "take evidence from the tables of a finished study of the same model in this folder, "
        "except "
        "for transfers to the target itself (default: this study's tables, or the shipped matrix)"
    )
    add_option(command, "--matrix", "DIR", what, type=Path)
    add_number(command, "--cores", "use at most N CPU cores (default: all)")
    add_flag(command, "--dry-run", "compute nothing, and rank by the available results")
    add_json_option(command)


def recommend_sources(args: argparse.Namespace) -> None:
    """Rank the sources of a target by evidence from other targets, for each algorithm."""
    from tasktransfer.designs.transfer import recommend as asking
    from tasktransfer.selection.methods import SELECTORS

    named = [name for name, selector in SELECTORS.items() if selector.is_fit]
    args.set = [*args.set, f"selectors={named}".replace("'", "")]
    why = "only transfer studies have sources to recommend"
    study = open_study_with_design("transfer", why, args)
    question = asking.parse_question(study, args.target, args.sources)
    evidence, origin = asking.read_evidence(study, args.matrix)
    needed = asking.select_affordable_nodes(study, question, args.hours, evidence)
    if needed and not args.dry_run:
        _run_jobs(study, needed, parse_overrides(args), args.cores)
    found = asking.rank_sources(study, question, evidence, origin)
    if args.json:
        print_result(asdict(found), str, as_json=True)
    else:
        print(escape_text(asking.format_recommendation(found)), end="")


def _run_jobs(study: Study, nodes: Sequence[Node], values: Any, cores: int | None) -> None:
    """Run the jobs of given nodes with Snakemake.

    Raises:
        TaskTransferError: Snakemake failed; its output says why.
    """
    from tasktransfer.cli.demo_study import WORKFLOW
    from tasktransfer.files import json_text

    words = [
        *(study.get_record_path(node) for node in nodes),
        *("--snakefile", str(WORKFLOW / "Snakefile")),
        *("--workflow-profile", str(WORKFLOW / "profiles" / "default")),
        *("--cores", str(cores or "all"), "--configfile", study.config_file),
        *("--config", *(f"{key}={json_text.encode(value)}" for key, value in values.items())),
    ]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        [sys.executable, "-P", "-m", "snakemake", *words],
        env={**os.environ, "PATH": path},
        stdout=sys.stderr,
        check=False,
    )
    if done.returncode:
        raise TaskTransferError(
            f"{study.config_file}: Snakemake ended with exit code {done.returncode}, and the "
            "output above shows the reason. Run `recommend` again to resume, or add --dry-run to "
            "use the available results."
        )
