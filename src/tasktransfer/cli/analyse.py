"""Commands that read records: tables, statistics, figures. What each makes is the design's."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.options import add_command, add_json, flag, open_design, option, positive
from tasktransfer.errors import ConfigError, escape_text
from tasktransfer.files import json_text

if TYPE_CHECKING:
    from tasktransfer.results.study import Study

DIGEST = re.compile(r"^[0-9a-f]{6,64}$")


def add_commands(commands: Any) -> None:
    """What reads records, and ``regret``, which reads a matrix of anyone."""
    command = add_command(commands, "collect", collect)
    flag(command, "--complete", "fail if a planned run has no usable record")
    command = add_command(commands, "choose", choose)
    option(command, "--name", "NAME", "which choice (default: the first that is not made)")
    add_command(commands, "statistics", statistics)
    add_command(commands, "figures", figures)
    add_command(commands, "report", report)
    command = add_command(commands, "regret", regret, config=False)
    what = "CSV: model, source, target, seed, score, and a column for each selector"
    option(command, "--matrix", "FILE", what, required=True, type=Path)
    several_numbers = "sources that are tried (default: 1 and 3)"
    command.add_argument("--k", metavar="K", type=positive, nargs="+", help=several_numbers)
    add_json(command)
    command = add_command(commands, "explain", explain)
    what = (
        "a printed table and names of its rows (table3 Persona_USR panel); the digest (6 or more "
        "digits) or folder of a node; or words that name runs: method, model and what they are "
        "about; transfer: dataset, model, algorithm, source (several joined by +) and target"
    )
    option(command, "words", "WORD", what, nargs="+")
    what = "of a model that is only asked: the prompt of this test instance, from 0 (default: 0)"
    option(command, "--instance", "N", what, type=int, default=0)
    add_json(command)


def collect(chosen: argparse.Namespace) -> None:
    """Make the Parquet tables from the records that are there."""
    study, design = open_design(chosen)
    design.collect(study, chosen.complete)


def choose(chosen: argparse.Namespace) -> None:
    """Make a choice that the plan waits for; transfer: multi-source targets and sources."""
    study, design = open_design(chosen)
    if not study.plan.choices or design.choose is None:
        raise ConfigError(f"{study.config_file}: nothing is to be chosen in this study")
    first, *_ = (*study.pending_choices, *study.plan.choices)
    design.choose(study, study.choice(chosen.name or first.name).name)


def statistics(chosen: argparse.Namespace) -> None:
    """Compute how sure the collected numbers are: intervals, tests, ranks, variance, agreement."""
    study, design = open_design(chosen, need_inputs=False)
    design.statistics(study)


def figures(chosen: argparse.Namespace) -> None:
    """Draw the figures whose data changed, and print the paper's tables."""
    from tasktransfer.designs.shown import write_figures

    study, design = open_design(chosen, need_inputs=False)
    write_figures(design, study)


def report(chosen: argparse.Namespace) -> None:
    """Write everything into one HTML file: the answer, tables, figures, and how it was made."""
    from tasktransfer.designs.shown import write_report

    study, design = open_design(chosen, need_inputs=False)
    write_report(design, study)


def regret(chosen: argparse.Namespace) -> None:
    """Judge how well selectors rank sources, by a matrix of transfers that anyone has trained."""
    from tasktransfer.designs.transfer.selectors.matrix import regret_of_file
    from tasktransfer.tables.regret import as_text

    frame, notes = regret_of_file(chosen.matrix, tuple(chosen.k or ()))
    if chosen.json:
        rows = json_text.loads(frame.to_json(orient="records"))
        print(json_text.printed({"notes": notes, "regret": rows}, indent=2))
        return
    print(escape_text("\n".join([*notes, as_text(frame)])), end="")


def explain(chosen: argparse.Namespace) -> None:
    """Trace a number, or a node, back to what made it: records, trainings, commands."""
    from tasktransfer.designs.shown import explained_cell

    study, design = open_design(chosen, need_inputs=False)
    if len(chosen.words) == 1 and (DIGEST.match(chosen.words[0]) or Path(chosen.words[0]).is_dir()):
        text = _explained(study, chosen.words[0], chosen.instance, chosen.json)
    elif (cell := explained_cell(design, study, chosen.words)) is not None:
        from tasktransfer.designs.explain_cell import as_text

        text = f"{json_text.printed(cell, indent=2)}\n" if chosen.json else as_text(cell)
    elif design.explain is not None:
        text = design.explain(study, chosen.words, chosen.json)
    else:
        from tasktransfer.designs.explain_runs import as_text, explain_runs

        facts = explain_runs(study, chosen.words)
        text = f"{json_text.printed(facts, indent=2)}\n" if chosen.json else as_text(facts)
    print(text if chosen.json else escape_text(text), end="")


def _explained(study: Study, word: str, instance: int, as_json: bool) -> str:
    from tasktransfer.operate import explain
    from tasktransfer.operate.explain_text import as_text

    facts = explain.explain(study, word, instance)
    return f"{json_text.printed(facts, indent=2)}\n" if as_json else as_text(facts)
