"""Commands that show replies to people: ``replies``, ``sheets`` and ``read-sheets``."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_json_option,
    add_number,
    add_option,
    add_out_option,
    open_study_with_design,
    parse_file,
    print_result,
)


def add_commands(commands: Any) -> None:
    """Add the commands ``replies``, ``sheets`` and ``read-sheets``."""
    command = add_command(commands, "replies", print_replies)
    add_number(command, "--instances", "print N contexts (default: %(default)s)", default=5)
    _add_sampling_options(command)
    add_json_option(command)
    command = add_command(commands, "sheets", write_rating_sheets)
    add_out_option(
        command,
        "write sheets/<rater>.html and key.json into this folder; keep key.json to yourself",
    )
    what = "ask for ratings on three scales, or to compare pairs of replies (default: %(default)s)"
    add_option(command, "--kind", "KIND", what, choices=("ratings", "pairs"), default="ratings")
    add_number(command, "--instances", "sample N contexts (default: %(default)s)", default=10)
    add_number(command, "--raters", "write sheets for N raters (default: %(default)s)", default=3)
    add_number(command, "--overlap", "show each item to N raters (default: all)")
    _add_sampling_options(command)
    command = add_command(commands, "read-sheets", read_sheets, config=False)
    what = "read these files, which raters downloaded from their sheets"
    add_option(command, "answers", "ANSWERS", what, nargs="+", type=Path)
    add_option(command, "--key", "FILE", "read key.json of the sheets", type=Path, required=True)
    what = "write the judgements to this CSV file, which `tasktransfer judgements` reads"
    add_option(command, "--out", "FILE", what, type=parse_file, required=True)


def _add_sampling_options(command: argparse.ArgumentParser) -> None:
    what = "include these models, such as Gold ret-base gen-base (default: all)"
    add_option(command, "--models", "MODEL", what, nargs="+", default=[])
    what = "sample contexts and orders with random seed N (default: %(default)s)"
    add_option(command, "--seed", "N", what, type=int, default=0)


def print_replies(args: argparse.Namespace) -> None:
    """Print test contexts with the replies of all models, which stay on this machine."""
    from tasktransfer.designs.empathetic.replies import (
        format_context,
        read_answered_contexts,
        sample_contexts,
    )

    study = open_study_with_design(
        "empathetic", "only empathetic studies have replies to rate", args, need_inputs=False
    )
    contexts = read_answered_contexts(study, args.models)
    kept = sample_contexts(contexts, args.instances, args.seed)
    result = [asdict(context) for context in kept]
    print_result(result, lambda _: "\n\n".join(map(format_context, kept)) + "\n", as_json=args.json)


def write_rating_sheets(args: argparse.Namespace) -> None:
    """Write blind rating sheets for people, as HTML files, and their key."""
    from tasktransfer.designs.empathetic.replies import read_answered_contexts
    from tasktransfer.designs.empathetic.sheets.write import plan_sheets, write_sheets

    study = open_study_with_design(
        "empathetic", "only empathetic studies have replies to rate", args, need_inputs=False
    )
    planned = plan_sheets(
        read_answered_contexts(study, args.models),
        args.kind,
        instances=args.instances,
        raters=args.raters,
        overlap=args.overlap or args.raters,
        seed=args.seed,
    )
    *pages, key = write_sheets(planned, args.out)
    for file, items in zip(pages, planned.sheets.values(), strict=True):
        print(f"{file}: {len(items):,} items")
    print(f"{key}: names the model of each reply. Do not give it to raters.")


def read_sheets(args: argparse.Namespace) -> None:
    """Check the answers of raters, and write the ratings or choices of attentive ones."""
    import pandas as pd

    from tasktransfer.designs.empathetic.sheets.read import (
        list_columns,
        read_answers,
        read_key,
        select_rows,
    )
    from tasktransfer.files import replace_file
    from tasktransfer.present.printed import to_csv

    key = read_key(args.key)
    raters = read_answers(args.answers, key)
    for rater in raters:
        print(rater.summary)
    rows = select_rows(raters, " ".join(map(str, args.answers)))
    frame = pd.DataFrame(rows, columns=list(list_columns(key)))
    with replace_file(args.out) as part:
        part.write_text(to_csv(frame), encoding="utf-8")
    print(f"{args.out}: {len(rows):,} lines")
