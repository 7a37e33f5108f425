"""Commands of the FETA challenge: what is submitted, its score, and a local leaderboard."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_json,
    add_out,
    file,
    open_study_of,
    positive,
)
from tasktransfer.errors import escape_text
from tasktransfer.files import json_text

ENSEMBLES = ("majority", "mean")
STRINGS = ("csv", "tlidb")
FIDELITIES = ("default", "tlidb")
PRINTED = Path("-")
"""In place of a file: standard output."""


def add_commands(commands: Any) -> None:
    """``submit``, ``score`` and ``leaderboard``."""
    command = add_command(commands, "submit", submit)
    command.add_argument("--dataset", metavar="NAME", required=True, help="DailyDialog or Friends")
    command.add_argument("--model", metavar="NAME", required=True, help="a model of the study")
    command.add_argument(
        "--policy",
        metavar="POLICY",
        default="best-dev",
        help="how each task's transfer run is chosen: best-dev (default), fixed:ALGORITHM, "
        "selector:NAME (one of the study's), or named (with --runs); never by a test score",
    )
    command.add_argument(
        "--runs",
        metavar="FILE",
        type=Path,
        help="for named: YAML or JSON, task: {algorithm: .., sources: [..], seed: ..}",
    )
    command.add_argument(
        "--ensemble", choices=ENSEMBLES, help="answers of all seeds together, not of the best one"
    )
    command.add_argument(
        "--strings",
        choices=STRINGS,
        default="csv",
        help="csv quotes what has to be (default), tlidb writes as the paper's toolkit does",
    )
    command.add_argument(
        "--out",
        metavar="FILE.zip",
        type=file,
        help="the archive (default: <results>/submissions/<dataset>-<model>.zip)",
    )
    add_json(command)

    command = add_command(commands, "score", score, config=False)
    command.add_argument(
        "submission", metavar="SUBMISSION", type=Path, help="a zip, or a folder laid out as one"
    )
    _add_scoring(command)
    what = "print the whole report as JSON, or write it to a file"
    command.add_argument("--json", metavar="FILE", type=file, nargs="?", const=PRINTED, help=what)
    command.add_argument(
        "--shared-ids",
        action="store_true",
        help="score the instances that the submission and this release both have, for one made "
        "with another version of the release; its scores compare with no others",
    )
    command = add_command(commands, "leaderboard", leaderboard, config=False)
    command.add_argument(
        "folder", metavar="DIR", type=Path, help="a folder with submissions (.zip)"
    )
    _add_scoring(command)
    add_out(command, "write Markdown, HTML and CSV there", required=False)
    command.add_argument(
        "--jobs",
        metavar="N",
        type=positive,
        default=os.cpu_count() or 1,
        help="processes that share the archives (default: one a core)",
    )
    add_json(command)


def _add_scoring(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--data",
        metavar="DIR",
        type=Path,
        required=True,
        help="the release: a folder with TLiDB_<dataset>/ or TLiDB_<dataset>.zip",
    )
    command.add_argument(
        "--dataset",
        metavar="NAME",
        help="DailyDialog or Friends (default: what the task folders say)",
    )
    command.add_argument(
        "--fidelity",
        choices=FIDELITIES,
        default="default",
        help="how metrics count: as the paper says (default), or with the toolkit's habits",
    )


def submit(chosen: argparse.Namespace) -> None:
    """Make a challenge submission from finished records."""
    from tasktransfer.designs.transfer.challenge.submit import Wish, make

    why = "only transfer studies can be submitted to the challenge"
    study = open_study_of("transfer", why, chosen, need_inputs=False)
    wish = Wish(
        dataset=chosen.dataset,
        model=chosen.model,
        policy=chosen.policy,
        runs=chosen.runs,
        ensemble=chosen.ensemble,
        strings=chosen.strings,
    )
    made = make(study, wish, chosen.out)
    if chosen.json:
        chosen_runs = json_text.read_object(made.choice)
        print(json_text.printed({"archive": str(made.archive), **chosen_runs}, indent=2))
    else:
        print(escape_text(made.text))


def score(chosen: argparse.Namespace) -> None:
    """Check a challenge submission and score it, offline."""
    from tasktransfer.designs.transfer.challenge.score import (
        as_json,
        as_text,
        refuse_invalid,
        score_file,
        warnings_text,
        write_json,
    )

    report = score_file(
        chosen.submission,
        chosen.data,
        dataset=chosen.dataset,
        fidelity=chosen.fidelity,
        shared_ids=chosen.shared_ids,
    )
    if chosen.json == PRINTED:
        print(json_text.printed(as_json(report), indent=2))
    elif chosen.json:
        write_json(report, chosen.json)
    for line in warnings_text(report):
        print(escape_text(line), file=sys.stderr)
    refuse_invalid(report, hint=not chosen.shared_ids)
    if chosen.json != PRINTED:
        print(escape_text(as_text(report)))


def leaderboard(chosen: argparse.Namespace) -> None:
    """Rank many challenge submissions, with intervals and paired tests."""
    from tasktransfer.designs.transfer.challenge.leaderboard import make_leaderboard
    from tasktransfer.designs.transfer.challenge.leaderboard_pages import (
        as_json,
        as_markdown,
        write_leaderboard,
    )

    ranked = make_leaderboard(
        chosen.folder,
        chosen.data,
        dataset=chosen.dataset,
        fidelity=chosen.fidelity,
        jobs=chosen.jobs,
    )
    files = write_leaderboard(ranked, chosen.out) if chosen.out else []
    if chosen.json:
        print(json_text.printed({**as_json(ranked), "files": [*map(str, files)]}, indent=2))
        return
    print(escape_text(as_markdown(ranked)))
    for path in files:
        print(path)
