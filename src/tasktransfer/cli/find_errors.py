"""Commands that say what to label next: ``errors`` and ``learning-curve``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_json,
    add_number,
    add_option,
    open_study,
    open_study_with_design,
    parse_file,
    show,
)

TASK = "task, as DATASET/TASK or TASK (default: the only one of your own files)"


def add_commands(commands: Any) -> None:
    """Add ``errors`` and ``learning-curve``."""
    command = add_command(commands, "errors", errors)
    add_option(command, "--task", "TASK", TASK)
    what = (
        "frozen_logistic or tfidf_logistic, fitted on the other dialogues (default: the one with "
        "the fewest errors)"
    )
    add_option(command, "--method", "METHOD", what)
    add_number(command, "--top", "number of errors to print (default: %(default)s)", default=20)
    what = "CSV file to write, with all errors"
    add_option(command, "--out", "FILE", what, type=parse_file)
    add_flag(command, "--texts", "also write the texts, which stay on this machine")
    add_json(command)
    command = add_command(commands, "learning-curve", learning_curve)
    add_option(command, "--task", "TASK", TASK)
    what = "samples of training dialogues of each size (default: %(default)s)"
    add_number(command, "--seeds", what, default=5)
    add_json(command)


def errors(chosen: argparse.Namespace) -> None:
    """List confident errors and probable label errors by file and line."""
    import pandas as pd

    from tasktransfer.files import replace_file
    from tasktransfer.jobs.find_errors import find_errors
    from tasktransfer.present.csv_text import to_csv
    from tasktransfer.present.text import format_table

    found = find_errors(open_study(chosen), chosen.task, chosen.method)
    rows = [error.describe(texts=chosen.texts) for error in found.errors]
    if chosen.out is not None:
        with replace_file(chosen.out) as part:
            part.write_text(to_csv(pd.DataFrame(rows)), encoding="utf-8")
    seen = {
        "dataset": found.dataset,
        "task": found.task,
        "method": found.method,
        "instances": found.instances,
        "errors": rows[: chosen.top],
    }
    lines = [*format_table(rows[: chosen.top]), f"{found.summary}."]
    show(seen, lambda _: "\n".join([*lines, ""]), as_json=chosen.json)


def learning_curve(chosen: argparse.Namespace) -> None:
    """Score the study's references on 25, 50, 75 and 100 % of the training dialogues."""
    from tasktransfer.designs.transfer.learning_curve import write_learning_curve
    from tasktransfer.present.text import format_table

    study = open_study_with_design("transfer", "it has references", chosen)
    frame, sentences = write_learning_curve(study, chosen.task, chosen.seeds)
    rows: list[dict[str, Any]] = json.loads(frame.to_json(orient="records"))
    lines = [*format_table(rows), *sentences]
    show(rows, lambda _: "\n".join([*lines, ""]), as_json=chosen.json)
