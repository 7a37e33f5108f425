"""Commands for the FETA challenge: submissions, their scores, and a local leaderboard."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_json_option,
    add_out_option,
    open_study_with_design,
    parse_file,
    parse_positive,
)
from tasktransfer.errors import escape_text
from tasktransfer.files import json_text

ENSEMBLES = ("majority", "mean")
STRINGS = ("csv", "tlidb")
FIDELITIES = ("default", "tlidb")
STANDARD_OUTPUT = Path("-")
"""File name that means standard output."""


def add_commands(commands: Any) -> None:
    """Add the commands ``submit``, ``score`` and ``leaderboard``."""
    command = add_command(commands, "submit", create_submission)
    command.add_argument(
        "--dataset",
        metavar="NAME",
        required=True,
        help="dataset of the submission: DailyDialog or Friends",
    )
    command.add_argument(
        "--model",
        metavar="NAME",
        required=True,
        help="model of the study whose predictions are submitted",
    )
    command.add_argument(
        "--policy",
        metavar="POLICY",
        default="best-dev",
        help=(
            "policy that selects one transfer run for each task without test scores: best-dev "
            "(default), fixed:ALGORITHM, selector:NAME (a selector of the study), or named (with "
            "--runs)"
        ),
    )
    command.add_argument(
        "--runs",
        metavar="FILE",
        type=Path,
        help=(
            "YAML or JSON file that names the runs for --policy named; each entry has the form "
            "task: {algorithm: .., sources: [..], seed: ..}"
        ),
    )
    command.add_argument(
        "--ensemble",
        choices=ENSEMBLES,
        help=(
            "combine the answers of all seeds instead of using only the answers of the best seed"
        ),
    )
    command.add_argument(
        "--strings",
        choices=STRINGS,
        default="csv",
        help=(
            "format of texts in the CSV files: csv (default) quotes only the fields that need "
            "quotes, and tlidb is the format of the paper's toolkit"
        ),
    )
    command.add_argument(
        "--out",
        metavar="FILE.zip",
        type=parse_file,
        help=(
            "write the submission to this zip file (default: "
            "<results>/submissions/<dataset>-<model>.zip)"
        ),
    )
    add_json_option(command)

    command = add_command(commands, "score", score_submission, config=False)
    command.add_argument(
        "submission",
        metavar="SUBMISSION",
        type=Path,
        help="score this submission: a zip file, or a folder with the same layout",
    )
    _add_scoring_options(command)
    what = "print the complete report as JSON, or write it to FILE"
    command.add_argument(
        "--json", metavar="FILE", type=parse_file, nargs="?", const=STANDARD_OUTPUT, help=what
    )
    command.add_argument(
        "--shared-ids",
        action="store_true",
        help=(
            "score only the instances that are in both the submission and the release. This "
            "option is for submissions that were created with another version of the release. "
            "The scores are not comparable with scores on all instances"
        ),
    )
    command = add_command(commands, "leaderboard", rank_submissions, config=False)
    command.add_argument(
        "folder", metavar="DIR", type=Path, help="rank the submissions (.zip files) in this folder"
    )
    _add_scoring_options(command)
    add_out_option(
        command,
        "write the leaderboard into this folder as Markdown, HTML and CSV (default: only print it)",
        required=False,
    )
    command.add_argument(
        "--jobs",
        metavar="N",
        type=parse_positive,
        default=os.cpu_count() or 1,
        help="score in N parallel processes (default: one per core)",
    )
    add_json_option(command)


def _add_scoring_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--data",
        metavar="DIR",
        type=Path,
        required=True,
        help=(
            "folder of the release with the gold answers, which contains TLiDB_<dataset>/ or "
            "TLiDB_<dataset>.zip"
        ),
    )
    command.add_argument(
        "--dataset",
        metavar="NAME",
        help=(
            "score the submission as a DailyDialog or a Friends submission (default: inferred "
            "from its task folders)"
        ),
    )
    command.add_argument(
        "--fidelity",
        choices=FIDELITIES,
        default="default",
        help="compute the metrics as in the paper (default) or as in the paper's toolkit (tlidb)",
    )


def create_submission(args: argparse.Namespace) -> None:
    """Create a challenge submission from finished records."""
    from tasktransfer.designs.challenge.submit import SubmissionOptions, write_submission

    why = "only transfer studies can be submitted to the challenge"
    study = open_study_with_design("transfer", why, args, need_inputs=False)
    wish = SubmissionOptions(
        dataset=args.dataset,
        model=args.model,
        policy=args.policy,
        runs=args.runs,
        ensemble=args.ensemble,
        strings=args.strings,
    )
    made = write_submission(study, wish, args.out)
    if args.json:
        chosen_runs = json_text.read_object(made.choice)
        print(json_text.encode({"archive": str(made.archive), **chosen_runs}, indent=2))
    else:
        print(escape_text(made.text))


def score_submission(args: argparse.Namespace) -> None:
    """Check and score a challenge submission, offline."""
    from tasktransfer.designs.challenge.score import (
        as_json,
        as_text,
        format_warnings,
        raise_submission_errors,
        score_file,
        write_json,
    )

    report = score_file(
        args.submission,
        args.data,
        dataset=args.dataset,
        fidelity=args.fidelity,
        shared_ids=args.shared_ids,
    )
    if args.json == STANDARD_OUTPUT:
        print(json_text.encode(as_json(report), indent=2))
    elif args.json:
        write_json(report, args.json)
    for line in format_warnings(report):
        print(escape_text(line), file=sys.stderr)
    raise_submission_errors(report, hint=not args.shared_ids)
    if args.json != STANDARD_OUTPUT:
        print(escape_text(as_text(report)))


def rank_submissions(args: argparse.Namespace) -> None:
    """Rank challenge submissions, with confidence intervals and paired tests."""
    from tasktransfer.designs.challenge.leaderboard import make_leaderboard
    from tasktransfer.designs.challenge.leaderboard_pages import (
        as_json,
        as_markdown,
        write_leaderboard,
    )

    ranked = make_leaderboard(
        args.folder,
        args.data,
        dataset=args.dataset,
        fidelity=args.fidelity,
        jobs=args.jobs,
    )
    files = write_leaderboard(ranked, args.out) if args.out else []
    if args.json:
        print(json_text.encode({**as_json(ranked), "files": [*map(str, files)]}, indent=2))
        return
    print(escape_text(as_markdown(ranked)))
    for path in files:
        print(path)
