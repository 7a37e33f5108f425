"""Commands that show replies to people: ``replies``, ``sheets`` and ``read-sheets``."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import (
    add_command,
    add_json,
    add_number,
    add_option,
    add_out,
    open_study_with_design,
    parse_file,
    show,
)


def add_commands(commands: Any) -> None:
    """Add ``replies``, ``sheets`` and ``read-sheets``."""
    command = add_command(commands, "replies", replies)
    add_number(command, "--instances", "number of contexts (default: %(default)s)", default=5)
    _add_choices(command)
    add_json(command)
    command = add_command(commands, "sheets", sheets)
    add_out(command, "folder for sheets/<rater>.html and key.json, which stays with you")
    what = "ratings on three scales, or pairs of replies to compare (default: %(default)s)"
    add_option(command, "--kind", "KIND", what, choices=("ratings", "pairs"), default="ratings")
    add_number(command, "--instances", "number of contexts (default: %(default)s)", default=10)
    add_number(command, "--raters", "number of sheets (default: %(default)s)", default=3)
    add_number(command, "--overlap", "number of raters of the same item (default: all)")
    _add_choices(command)
    command = add_command(commands, "read-sheets", read_sheets, config=False)
    what = "files that raters downloaded from their sheets"
    add_option(command, "answers", "ANSWERS", what, nargs="+", type=Path)
    add_option(command, "--key", "FILE", "key.json of the sheets", type=Path, required=True)
    what = "CSV file to write, which `tasktransfer judgements` reads"
    add_option(command, "--out", "FILE", what, type=parse_file, required=True)


def _add_choices(command: argparse.ArgumentParser) -> None:
    what = "models to include, such as Gold ret-base gen-base (default: all)"
    add_option(command, "--models", "MODEL", what, nargs="+", default=[])
    what = "seed of the random choices (default: %(default)s)"
    add_option(command, "--seed", "N", what, type=int, default=0)


def replies(chosen: argparse.Namespace) -> None:
    """Print test contexts with the replies of all models; the texts stay on this machine."""
    from tasktransfer.designs.empathetic.replies import (
        format_context,
        read_answered_contexts,
        sample_contexts,
    )

    study = open_study_with_design("empathetic", "it has no replies", chosen, need_inputs=False)
    contexts = read_answered_contexts(study, chosen.models)
    kept = sample_contexts(contexts, chosen.instances, chosen.seed)
    seen = [asdict(context) for context in kept]
    show(seen, lambda _: "\n\n".join(map(format_context, kept)) + "\n", as_json=chosen.json)


def sheets(chosen: argparse.Namespace) -> None:
    """Write blind rating sheets for people, as HTML files, and their key."""
    from tasktransfer.designs.empathetic.replies import read_answered_contexts
    from tasktransfer.designs.empathetic.sheets.write import plan_sheets, write_sheets

    study = open_study_with_design("empathetic", "it has no replies", chosen, need_inputs=False)
    planned = plan_sheets(
        read_answered_contexts(study, chosen.models),
        chosen.kind,
        instances=chosen.instances,
        raters=chosen.raters,
        overlap=chosen.overlap or chosen.raters,
        seed=chosen.seed,
    )
    *pages, key = write_sheets(planned, chosen.out)
    for file, items in zip(pages, planned.sheets.values(), strict=True):
        print(f"{file}: {len(items):,} items")
    print(f"{key}: says which model wrote each reply; do not give it to raters")


def read_sheets(chosen: argparse.Namespace) -> None:
    """Check the answers of raters, and write the ratings or choices of attentive ones."""
    import pandas as pd

    from tasktransfer.designs.empathetic.sheets.read import (
        list_columns,
        read_answers,
        read_key,
        select_rows,
    )
    from tasktransfer.files import replace_file
    from tasktransfer.present.csv_text import to_csv

    key = read_key(chosen.key)
    raters = read_answers(chosen.answers, key)
    for rater in raters:
        print(rater.summary)
    rows = select_rows(raters, " ".join(map(str, chosen.answers)))
    frame = pd.DataFrame(rows, columns=list(list_columns(key)))
    with replace_file(chosen.out) as part:
        part.write_text(to_csv(frame), encoding="utf-8")
    print(f"{chosen.out}: {len(rows):,} lines")
