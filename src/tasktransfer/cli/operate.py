"""Commands for a running or finished study: progress, sharing results, deleting unused files."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_json_option,
    add_option,
    add_set_option,
    open_design,
    parse_file,
    parse_overrides,
    parse_positive,
    print_result,
)
from tasktransfer.errors import ConfigError, DataError, escape_text
from tasktransfer.files import json_text
from tasktransfer.files.untrusted import read_regular

if TYPE_CHECKING:
    from tasktransfer.designs.design import Design
    from tasktransfer.results.study import Study

WATCH_SECONDS = 10
MOST_PROVENANCE = 2**20
"""Maximum size of a text about provenance and licences, in bytes."""
CLEAR = "\x1b[H\x1b[2J\x1b[3J"


def add_commands(commands: Any) -> None:
    """Add the commands ``status``, ``merge``, ``pack`` and ``gc``."""
    command = add_command(commands, "status", show_status, light=True)
    what = f"show the progress every SECONDS (default: {WATCH_SECONDS}) until the study is finished"
    add_option(
        command, "--watch", "SECONDS", what, nargs="?", type=parse_positive, const=WATCH_SECONDS
    )
    what = "show the cost of the finished training runs instead: hours, tokens, memory, energy"
    add_flag(command, "--summary", what)
    add_json_option(command)
    command = add_command(commands, "merge", merge_study)
    what = "merge this other results folder, or a file that `pack` wrote"
    add_option(command, "other", "OTHER", what, type=Path)
    add_flag(command, "--all", "copy all nodes, and not only those of this study")
    add_flag(command, "--no-checkpoints", "copy records and predictions without checkpoints")
    add_flag(command, "--dry-run", "report what would be copied without copying it")
    add_json_option(command)
    command = add_command(commands, "pack", pack_study)
    what = "write the pack to this Parquet file"
    add_option(command, "--out", "FILE", what, type=parse_file, required=True)
    what = "store the text of this file in the pack; it names the sources and licences of the data"
    add_option(command, "--provenance", "FILE", what, type=Path)
    what = "name the lab or person who made the records (default: no name)"
    add_option(command, "--by", "NAME", what, default="")
    add_flag(command, "--with-text", "store answers that quote the dialogues as text, not as codes")
    add_json_option(command)
    command = add_command(commands, "gc", collect_garbage, config=False)
    what = (
        "name the config files of all studies that share the results folder (default: config.yaml)"
    )
    add_option(command, "--config", "FILE", what, nargs="+", default=["config.yaml"])
    add_set_option(command)
    add_flag(command, "--yes", "delete the files without asking")
    what = "delete records and predictions of other studies and settings, too"
    add_flag(command, "--records", what)
    add_json_option(command)


def show_status(args: argparse.Namespace) -> None:
    """Show a study's finished, running and failed nodes, speed and time left."""
    from tasktransfer.operate import costs

    try:
        study, _ = _open_study_design(args)
        if args.summary:
            print_result(costs.summarise_costs(study), costs.as_text, as_json=args.json)
        else:
            _follow_status(study, args.watch, as_json=args.json)
    except KeyboardInterrupt:
        print()


def _follow_status(study: Study, every: int | None, *, as_json: bool) -> None:
    from tasktransfer.operate.status import ProgressWatcher
    from tasktransfer.operate.status_text import as_text

    watcher = ProgressWatcher(study)
    redraw = every is not None and not as_json and sys.stdout.isatty()
    while True:
        result = watcher.get_progress()
        text = (
            json_text.encode(result, indent=None if every else 2) + "\n"
            if as_json
            else escape_text(as_text(result))
        )
        print(CLEAR * redraw + text, end="\n" * (bool(every) and not as_json), flush=True)
        if every is None or not (result["left"] or result["choice_pending"]):
            return
        time.sleep(every)


def _open_study_design(args: argparse.Namespace) -> tuple[Study, Design]:
    """Open a study, and return it with its design.

    Inputs may be missing if their digests are cached: result folders are named after them.

    Raises:
        DataError: an input is missing and its digest is not cached.
    """
    study, design = open_design(args, need_inputs=False)
    if study.has_unknown_inputs:
        raise DataError(
            f"{study.config_file}: The results of this study cannot be identified, because its "
            "inputs are missing. Provide these inputs:\n  " + "\n  ".join(study.absent)
        )
    return study, design


def merge_study(args: argparse.Namespace) -> None:
    """Copy the finished nodes of another results folder, or of a packed study, into this study."""
    if not args.other.is_file():
        _merge_folder(args, args.other)
        return
    from tasktransfer.designs import load_config
    from tasktransfer.operate.commons.isolated import unpack_records

    config = load_config(args.config, parse_overrides(args))
    with unpack_records(args.other, config) as folder:
        _merge_folder(args, folder)


def _merge_folder(args: argparse.Namespace, other: Path) -> None:
    from tasktransfer.designs.outputs import list_dialogue_tables
    from tasktransfer.operate.merge import merge_results
    from tasktransfer.operate.merge_choices import merge_choices
    from tasktransfer.operate.merge_text import as_text, find_error

    study, design = _open_study_design(args)
    if not args.dry_run:
        study = merge_choices(study, other)
    result = merge_results(
        study,
        other,
        tables=list_dialogue_tables(design, study),
        everything=args.all,
        checkpoints=not args.no_checkpoints,
        dry_run=args.dry_run,
    )
    print_result(result, as_text, as_json=args.json)
    if problem := find_error(result):
        raise problem


def pack_study(args: argparse.Namespace) -> None:
    """Write the records and rows of all finished nodes into one Parquet file."""
    from tasktransfer.designs.outputs import list_dialogue_tables
    from tasktransfer.operate.merge_choices import list_choice_files
    from tasktransfer.operate.pack import as_text, pack_results

    study, design = _open_study_design(args)
    try:
        file = args.provenance
        provenance = read_regular(file, MOST_PROVENANCE).decode("utf-8") if file else ""
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--provenance {args.provenance}: The file cannot be read ({error}). Check the path "
            "and permissions of the file."
        ) from error
    result = pack_results(
        study,
        args.out,
        tables=[*list_dialogue_tables(design, study), *list_choice_files(study)],
        provenance=provenance,
        by=args.by.strip(),
        with_text=args.with_text,
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )
    print_result(result, as_text, as_json=args.json)


def collect_garbage(args: argparse.Namespace) -> None:
    """List files that no given study still needs, and delete them on request or with --yes."""
    from tasktransfer.operate.garbage import find_garbage, remove_garbage
    from tasktransfer.operate.garbage_text import as_text

    named = (argparse.Namespace(config=f, set=args.set) for f in args.config)
    studies = [_open_study_design(each)[0] for each in named]
    garbage = find_garbage(studies, records=args.records)
    if args.json:
        print(json_text.encode(garbage.as_json(), indent=2))
    else:
        print(escape_text(as_text(garbage)), end="")
    if not garbage.items:
        return
    if args.yes or (not args.json and _confirm_deletion(len(garbage.items))):
        gone = remove_garbage(garbage)
        print(escape_text(gone.as_text()), file=sys.stderr if args.json else sys.stdout)
    elif not args.json:
        print("Nothing was deleted. Add --yes to delete these files.")


def _confirm_deletion(count: int) -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return input(f"Delete these {count:,} items? [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        print()
        return False
