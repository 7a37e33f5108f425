"""Commands that say what to label next: ``errors`` and ``learning-curve``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_json_option,
    add_number,
    add_option,
    open_study,
    open_study_with_design,
    parse_file,
    print_result,
)

TASK = "use this task, DATASET/TASK or TASK (default: the only task of your own files)"


def add_commands(commands: Any) -> None:
    """Add the commands ``errors`` and ``learning-curve``."""
    command = add_command(commands, "errors", list_errors)
    add_option(command, "--task", "TASK", TASK)
    what = (
        "predict with frozen_logistic or tfidf_logistic, fitted on the other dialogues (default: "
        "the "
        "one with fewer errors)"
    )
    add_option(command, "--method", "METHOD", what)
    add_number(command, "--top", "print the first N errors (default: %(default)s)", default=20)
    what = "write all errors to this CSV file"
    add_option(command, "--out", "FILE", what, type=parse_file)
    add_flag(command, "--texts", "include the texts, which do not leave this machine")
    add_json_option(command)
    command = add_command(commands, "learning-curve", compute_learning_curve)
    add_option(command, "--task", "TASK", TASK)
    what = "sample training dialogues of each size N times (default: %(default)s)"
    add_number(command, "--seeds", what, default=5)
    add_json_option(command)


def list_errors(args: argparse.Namespace) -> None:
    """List confident errors and probable label errors by file and line."""
    import pandas as pd

    from tasktransfer.files import replace_file
    from tasktransfer.jobs.find_errors import find_errors
    from tasktransfer.present.columns import format_table
    from tasktransfer.present.printed import to_csv

    found = find_errors(open_study(args), args.task, args.method)
    rows = [error.describe(texts=args.texts) for error in found.errors]
    if args.out is not None:
        with replace_file(args.out) as part:
            part.write_text(to_csv(pd.DataFrame(rows)), encoding="utf-8")
    result = {
        "dataset": found.dataset,
        "task": found.task,
        "method": found.method,
        "instances": found.instances,
        "errors": rows[: args.top],
    }
    lines = [*format_table(rows[: args.top]), f"{found.summary}."]
    print_result(result, lambda _: "\n".join([*lines, ""]), as_json=args.json)


def compute_learning_curve(args: argparse.Namespace) -> None:
    """Score the study's references on 25, 50, 75 and 100 % of the training dialogues."""
    from tasktransfer.designs.transfer.learning_curve import write_learning_curve
    from tasktransfer.present.columns import format_table

    study = open_study_with_design("transfer", "only transfer studies have references", args)
    frame, sentences = write_learning_curve(study, args.task, args.seeds)
    rows: list[dict[str, Any]] = json.loads(frame.to_json(orient="records"))
    lines = [*format_table(rows), *sentences]
    print_result(rows, lambda _: "\n".join([*lines, ""]), as_json=args.json)
