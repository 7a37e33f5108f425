"""Commands that read records and write tables, statistics, figures and reports.

The study's design defines the outputs of each command.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_json,
    add_option,
    open_design,
    parse_positive,
)
from tasktransfer.errors import ConfigError, escape_text
from tasktransfer.files import json_text


def add_commands(commands: Any) -> None:
    """Add the commands that read records, and ``regret``, which reads any matrix of scores."""
    command = add_command(commands, "collect", collect)
    add_flag(command, "--complete", "fail if a planned run has no usable record")
    command = add_command(commands, "choose", choose)
    add_option(command, "--name", "NAME", "name of the selection (default: the first pending one)")
    add_command(commands, "statistics", statistics)
    command = add_command(commands, "figures", figures)
    what = (
        "screen: PNG and PDF with titles, and the tables; paper: PDF and PGF files 5.5 or 3.3 "
        "inches wide, with a LaTeX caption, in figures/paper (default: screen)"
    )
    command.add_argument("--style", choices=("screen", "paper"), default="screen", help=what)
    add_command(commands, "report", report)
    command = add_command(commands, "regret", regret, config=False)
    what = "CSV file with columns model, source, target, seed, score, and one per selector"
    add_option(command, "--matrix", "FILE", what, required=True, type=Path)
    what = "number of top-ranked sources to try; several values allowed (default: 1 3)"
    command.add_argument("--k", metavar="K", type=parse_positive, nargs="+", help=what)
    add_json(command)
    command = add_command(commands, "explain", explain)
    what = (
        "name of a printed table and its row (table3 Persona_USR panel); the digest (6 or more "
        "digits) or folder of a node; names of runs, such as method and model; or, in a transfer "
        "study, a cell: dataset, model, algorithm, source (joined with + if several) and target"
    )
    add_option(command, "words", "WORD", what, nargs="+")
    what = "show a prompted model's prompt for this test instance, counted from 0 (default: 0)"
    add_option(command, "--instance", "N", what, type=int, default=0)
    add_json(command)


def collect(chosen: argparse.Namespace) -> None:
    """Build the Parquet tables from the available records."""
    from tasktransfer.designs.commands import write_collected

    study, design = open_design(chosen)
    write_collected(design, study, complete=chosen.complete)


def choose(chosen: argparse.Namespace) -> None:
    """Write a pending selection, for example the sources of a multi-source transfer study."""
    study, design = open_design(chosen)
    if not study.plan.choices or design.choose is None:
        raise ConfigError(
            f"{study.config_file}: The study has no pending selection. Continue with "
            "`tasktransfer run`."
        )
    first, *_ = (*study.pending_choices, *study.plan.choices)
    design.choose(study, study.choice(chosen.name or first.name).name)


def statistics(chosen: argparse.Namespace) -> None:
    """Compute intervals, tests, ranks, variances and agreement from the collected tables."""
    from tasktransfer.designs.commands import write_statistics

    study, design = open_design(chosen, need_inputs=False)
    write_statistics(design, study)


def figures(chosen: argparse.Namespace) -> None:
    """Draw the figures whose data changed, and print the paper's tables."""
    from tasktransfer.designs.commands import write_figures, write_paper_figures

    study, design = open_design(chosen, need_inputs=False)
    (write_paper_figures if chosen.style == "paper" else write_figures)(design, study)


def report(chosen: argparse.Namespace) -> None:
    """Write one HTML file with the study's answer, tables, figures and provenance."""
    from tasktransfer.designs.commands import write_report

    study, design = open_design(chosen, need_inputs=False)
    write_report(design, study)


def regret(chosen: argparse.Namespace) -> None:
    """Evaluate how well selectors rank sources, from any matrix of transfer scores."""
    from tasktransfer.selection.matrix import compute_file_regret
    from tasktransfer.selection.regret import as_text

    frame, notes = compute_file_regret(chosen.matrix, tuple(chosen.k or ()))
    if chosen.json:
        rows = json_text.loads(frame.to_json(orient="records"))
        print(json_text.encode({"notes": notes, "regret": rows}, indent=2))
        return
    print(escape_text("\n".join([*notes, as_text(frame)])), end="")


def explain(chosen: argparse.Namespace) -> None:
    """Trace a number or a node back to its records, training runs and commands."""
    from tasktransfer.designs import explain as explaining

    study, design = open_design(chosen, need_inputs=False)
    explanation = explaining.explain(study, design.analysis(study), chosen.words, chosen.instance)
    if chosen.json:
        print(explaining.as_json(explanation), end="")
    else:
        print(escape_text(explaining.as_text(explanation)), end="")
