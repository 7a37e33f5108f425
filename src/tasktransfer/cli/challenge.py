"""Commands for the FETA challenge: submissions, their scores, and a local leaderboard."""

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
    open_study_with_design,
    parse_file,
    parse_positive,
)
from tasktransfer.errors import escape_text
from tasktransfer.files import json_text

ENSEMBLES = ("majority", "mean")
STRINGS = ("csv", "tlidb")
FIDELITIES = ("default", "tlidb")
PRINTED = Path("-")
"""File name that stands for standard output."""


def add_commands(commands: Any) -> None:
    """Add ``submit``, ``score`` and ``leaderboard``."""
    command = add_command(commands, "submit", submit)
    command.add_argument(
        "--dataset", metavar="NAME", required=True, help="dataset to submit: DailyDialog or Friends"
    )
    command.add_argument(
        "--model", metavar="NAME", required=True, help="name of a model of the study"
    )
    command.add_argument(
        "--policy",
        metavar="POLICY",
        default="best-dev",
        help=(
            "policy that chooses the transfer run of each task: best-dev (default), "
            "fixed:ALGORITHM, selector:NAME (a selector of the study), or named (with --runs); "
            "test scores are never used"
        ),
    )
    command.add_argument(
        "--runs",
        metavar="FILE",
        type=Path,
        help=(
            "YAML or JSON file with the runs of the policy named; each entry is task: "
            "{algorithm: .., sources: [..], seed: ..}"
        ),
    )
    command.add_argument(
        "--ensemble",
        choices=ENSEMBLES,
        help="combine the answers of all seeds instead of using those of the best seed",
    )
    command.add_argument(
        "--strings",
        choices=STRINGS,
        default="csv",
        help=(
            "format of texts in CSV files: csv quotes fields that need it (default), tlidb "
            "writes like the paper's toolkit"
        ),
    )
    command.add_argument(
        "--out",
        metavar="FILE.zip",
        type=parse_file,
        help="zip file to write (default: <results>/submissions/<dataset>-<model>.zip)",
    )
    add_json(command)

    command = add_command(commands, "score", score, config=False)
    command.add_argument(
        "submission",
        metavar="SUBMISSION",
        type=Path,
        help="submission to score: a zip file, or a folder with the same layout",
    )
    _add_scoring(command)
    what = "print the complete report as JSON, or write it to FILE"
    command.add_argument(
        "--json", metavar="FILE", type=parse_file, nargs="?", const=PRINTED, help=what
    )
    command.add_argument(
        "--shared-ids",
        action="store_true",
        help=(
            "score only the instances that the submission shares with this release, if it was "
            "made with another version; such scores are not comparable with others"
        ),
    )
    command = add_command(commands, "leaderboard", leaderboard, config=False)
    command.add_argument(
        "folder", metavar="DIR", type=Path, help="folder with submissions (.zip files)"
    )
    _add_scoring(command)
    add_out(command, "folder for the leaderboard as Markdown, HTML and CSV", required=False)
    command.add_argument(
        "--jobs",
        metavar="N",
        type=parse_positive,
        default=os.cpu_count() or 1,
        help="number of parallel processes (default: one per core)",
    )
    add_json(command)


def _add_scoring(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--data",
        metavar="DIR",
        type=Path,
        required=True,
        help=("folder of the release, which contains TLiDB_<dataset>/ or TLiDB_<dataset>.zip"),
    )
    command.add_argument(
        "--dataset",
        metavar="NAME",
        help=(
            "dataset of the submission, DailyDialog or Friends (default: inferred from the task "
            "folders)"
        ),
    )
    command.add_argument(
        "--fidelity",
        choices=FIDELITIES,
        default="default",
        help=(
            "implementation of the metrics: as in the paper (default), or as in its toolkit (tlidb)"
        ),
    )


def submit(chosen: argparse.Namespace) -> None:
    """Create a challenge submission from finished records."""
    from tasktransfer.designs.challenge.submit import Wish, make

    why = "only transfer studies can be submitted to the challenge"
    study = open_study_with_design("transfer", why, chosen, need_inputs=False)
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
        print(json_text.encode({"archive": str(made.archive), **chosen_runs}, indent=2))
    else:
        print(escape_text(made.text))


def score(chosen: argparse.Namespace) -> None:
    """Check and score a challenge submission, offline."""
    from tasktransfer.designs.challenge.score import (
        as_json,
        as_text,
        format_warnings,
        refuse_invalid,
        score_file,
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
        print(json_text.encode(as_json(report), indent=2))
    elif chosen.json:
        write_json(report, chosen.json)
    for line in format_warnings(report):
        print(escape_text(line), file=sys.stderr)
    refuse_invalid(report, hint=not chosen.shared_ids)
    if chosen.json != PRINTED:
        print(escape_text(as_text(report)))


def leaderboard(chosen: argparse.Namespace) -> None:
    """Rank challenge submissions, with confidence intervals and paired tests."""
    from tasktransfer.designs.challenge.leaderboard import make_leaderboard
    from tasktransfer.designs.challenge.leaderboard_pages import (
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
        print(json_text.encode({**as_json(ranked), "files": [*map(str, files)]}, indent=2))
        return
    print(escape_text(as_markdown(ranked)))
    for path in files:
        print(path)
