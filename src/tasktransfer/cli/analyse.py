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
    add_json_option,
    add_option,
    open_design,
    parse_positive,
)
from tasktransfer.errors import ConfigError, escape_text
from tasktransfer.files import json_text


def add_commands(commands: Any) -> None:
    """Add the commands that read records, and ``regret``, which reads any matrix of scores."""
    command = add_command(commands, "collect", collect_tables)
    add_flag(command, "--complete", "fail and write nothing if a planned run has no usable record")
    command = add_command(commands, "choose", write_selection)
    add_option(
        command,
        "--name",
        "NAME",
        "make the selection with this name (default: the first pending one)",
    )
    add_command(commands, "statistics", compute_statistics)
    command = add_command(commands, "figures", draw_study_figures)
    what = (
        "draw for the screen (PNG and PDF with titles, and the tables) or for a paper (PDF and PGF "
        "files 5.5 or 3.3 inches wide with a LaTeX caption, in figures/paper; default: screen)"
    )
    command.add_argument("--style", choices=("screen", "paper"), default="screen", help=what)
    add_command(commands, "report", write_study_report)
    command = add_command(commands, "regret", evaluate_selectors, config=False)
    what = (
        "read a CSV file with the columns model, source, target, seed, score, and one per selector"
    )
    add_option(command, "--matrix", "FILE", what, required=True, type=Path)
    what = (
        "try the K sources that a selector ranks highest; several values are allowed (default: 1 3)"
    )
    command.add_argument("--k", metavar="K", type=parse_positive, nargs="+", help=what)
    add_json_option(command)
    command = add_command(commands, "explain", explain_result)
    what = (
        "what to explain: a printed table and its row (table3 Persona_USR panel); a node by "
        "its "
        "folder or 6 or more digits of its digest; runs by method, model and other names; or, in a "
        "transfer study, a cell by dataset, model, algorithm, source (joined with + if several) "
        "and "
        "target"
    )
    add_option(command, "words", "WORD", what, nargs="+")
    what = "show the prompt of a prompted model for test instance N, counted from 0 (default: 0)"
    add_option(command, "--instance", "N", what, type=int, default=0)
    add_json_option(command)


def collect_tables(args: argparse.Namespace) -> None:
    """Build the Parquet tables from the available records."""
    from tasktransfer.designs.commands import write_collected_tables

    study, design = open_design(args)
    write_collected_tables(design, study, complete=args.complete)


def write_selection(args: argparse.Namespace) -> None:
    """Write a pending selection, for example the sources of a multi-source transfer study."""
    study, design = open_design(args)
    if not study.plan.choices or design.choose is None:
        raise ConfigError(
            f"{study.config_file}: The study does not wait for a selection. Continue with "
            "`tasktransfer run`."
        )
    first, *_ = (*study.pending_choices, *study.plan.choices)
    design.choose(study, study.get_choice(args.name or first.name).name)


def compute_statistics(args: argparse.Namespace) -> None:
    """Compute intervals, tests, ranks, variances and agreement from the collected tables."""
    from tasktransfer.designs.commands import write_statistics

    study, design = open_design(args, need_inputs=False)
    write_statistics(design, study)


def draw_study_figures(args: argparse.Namespace) -> None:
    """Draw the figures whose data changed, and print the paper's tables."""
    from tasktransfer.designs.commands import write_figures, write_paper_figures

    study, design = open_design(args, need_inputs=False)
    (write_paper_figures if args.style == "paper" else write_figures)(design, study)


def write_study_report(args: argparse.Namespace) -> None:
    """Write one HTML file with the study's answer, tables, figures and provenance."""
    from tasktransfer.designs.commands import write_report

    study, design = open_design(args, need_inputs=False)
    write_report(design, study)


def evaluate_selectors(args: argparse.Namespace) -> None:
    """Evaluate how well selectors rank sources, from any matrix of transfer scores."""
    from tasktransfer.selection.matrix import compute_file_regret
    from tasktransfer.selection.regret import as_text

    frame, notes = compute_file_regret(args.matrix, tuple(args.k or ()))
    if args.json:
        rows = json_text.loads(frame.to_json(orient="records"))
        print(json_text.encode({"notes": notes, "regret": rows}, indent=2))
        return
    print(escape_text("\n".join([*notes, as_text(frame)])), end="")


def explain_result(args: argparse.Namespace) -> None:
    """Trace a number or a node back to its records, training runs and commands."""
    from tasktransfer.designs import explain as explaining

    study, design = open_design(args, need_inputs=False)
    explanation = explaining.explain(study, design.analysis(study), args.words, args.instance)
    if args.json:
        print(explaining.as_json(explanation), end="")
    else:
        print(escape_text(explaining.as_text(explanation)), end="")
