"""Commands that read records: tables, statistics, figures. What each makes is the design's."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.options import add_command, open_study
from tasktransfer.errors import ConfigError

if TYPE_CHECKING:
    from tasktransfer.results.study import Study

DIGEST = re.compile(r"^[0-9a-f]{6,64}$")


def add_commands(commands: Any) -> None:
    """``collect``, ``choose``, ``statistics``, ``figures``, ``report`` and ``explain``."""
    command = add_command(commands, "collect", collect)
    command.add_argument(
        "--complete", action="store_true", help="fail if a planned run has no usable record"
    )
    add_command(commands, "choose", choose)
    add_command(commands, "statistics", statistics)
    add_command(commands, "figures", figures)
    add_command(commands, "report", report)
    command = add_command(commands, "explain", explain)
    command.add_argument(
        "words",
        metavar="WORD",
        nargs="+",
        help="the digest (6 or more digits) or folder of a node, or a cell as the study's design "
        "names it; transfer: dataset, model, algorithm, source (several joined by +) and target",
    )
    command.add_argument("--json", action="store_true", help="print JSON")


def collect(chosen: argparse.Namespace) -> None:
    """Make the Parquet tables from the records that are there."""
    from tasktransfer.designs import design_of

    study = open_study(chosen)
    design_of(study.config).collect(study, chosen.complete)


def choose(chosen: argparse.Namespace) -> None:
    """Make the choice that the plan waits for; transfer: multi-source targets and sources."""
    from tasktransfer.designs import design_of

    study = open_study(chosen)
    if study.plan.choice is None:
        raise ConfigError(f"{study.config_file}: nothing is to be chosen in this study")
    design_of(study.config).choose(study)


def statistics(chosen: argparse.Namespace) -> None:
    """Compute how sure the collected numbers are: intervals, tests, ranks, variance, agreement."""
    from tasktransfer.designs import design_of

    study = open_study(chosen, need_inputs=False)
    design_of(study.config).statistics(study)


def figures(chosen: argparse.Namespace) -> None:
    """Draw the figures whose data changed, and print the paper's tables."""
    from tasktransfer.designs import design_of

    study = open_study(chosen, need_inputs=False)
    design_of(study.config).figures(study)


def report(chosen: argparse.Namespace) -> None:
    """Write everything into one HTML file: tables, statistics, figures."""
    from tasktransfer.designs import design_of

    study = open_study(chosen, need_inputs=False)
    design_of(study.config).report(study)


def explain(chosen: argparse.Namespace) -> None:
    """Trace a number, or a node, back to what made it: records, trainings, commands."""
    from tasktransfer.designs import design_of

    study = open_study(chosen, need_inputs=False)
    design = design_of(study.config)
    if len(chosen.words) == 1 and (DIGEST.match(chosen.words[0]) or Path(chosen.words[0]).is_dir()):
        text = _explained(study, chosen.words[0], chosen.json)
    elif design.explain is not None:
        text = design.explain(study, chosen.words, chosen.json)
    else:
        raise ConfigError(
            f"{' '.join(chosen.words)}: design {design.name} explains no cells; give a node's "
            "digest (6 or more hex digits) or its folder"
        )
    print(text, end="")


def _explained(study: Study, word: str, as_json: bool) -> str:
    from tasktransfer.operate import explain
    from tasktransfer.operate.explain_text import as_text

    facts = explain.explain(study, word)
    return f"{json.dumps(facts, indent=2)}\n" if as_json else as_text(facts)
