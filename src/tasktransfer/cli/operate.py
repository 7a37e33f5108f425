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
    add_json,
    add_option,
    add_set,
    open_design,
    parse_file,
    parse_overrides,
    parse_positive,
    show,
)
from tasktransfer.errors import ConfigError, DataError, escape_text
from tasktransfer.files import json_text
from tasktransfer.files.regular import read_regular

if TYPE_CHECKING:
    from tasktransfer.designs.design import Design
    from tasktransfer.results.study import Study

WATCH_SECONDS = 10
MOST_PROVENANCE = 2**20
"""Maximum size in bytes of a text about provenance and licences."""
CLEAR = "\x1b[H\x1b[2J\x1b[3J"


def add_commands(commands: Any) -> None:
    """Add ``status``, ``merge``, ``pack`` and ``gc``."""
    command = add_command(commands, "status", status, light=True)
    what = f"refresh every SECONDS (default: {WATCH_SECONDS}) until the study is finished"
    add_option(
        command, "--watch", "SECONDS", what, nargs="?", type=parse_positive, const=WATCH_SECONDS
    )
    what = "show the cost of the finished runs instead: hours, tokens, memory, energy"
    add_flag(command, "--summary", what)
    add_json(command)
    command = add_command(commands, "merge", merge)
    what = "another results folder, or a file written by `pack`"
    add_option(command, "other", "OTHER", what, type=Path)
    add_flag(command, "--all", "copy every node, not only those of this study")
    add_flag(command, "--no-checkpoints", "copy records and predictions, but no checkpoints")
    add_flag(command, "--dry-run", "report what would be copied, and copy nothing")
    add_json(command)
    command = add_command(commands, "pack", pack)
    add_option(command, "--out", "FILE", "Parquet file to write", type=parse_file, required=True)
    what = "text file about the data's sources and licences; its text is stored in the pack"
    add_option(command, "--provenance", "FILE", what, type=Path)
    what = "name of the lab or person who made the records"
    add_option(command, "--by", "NAME", what, default="")
    add_flag(command, "--with-text", "store answers that quote the dialogues as text, not as codes")
    add_json(command)
    command = add_command(commands, "gc", gc, config=False)
    what = "config files of all studies that use the results folder (default: config.yaml)"
    add_option(command, "--config", "FILE", what, nargs="+", default=["config.yaml"])
    add_set(command)
    add_flag(command, "--yes", "delete without asking")
    what = "also delete records and predictions of other studies and settings"
    add_flag(command, "--records", what)
    add_json(command)


def status(chosen: argparse.Namespace) -> None:
    """Show a study's progress: finished, running and failed nodes, speed and time left."""
    from tasktransfer.operate import costs

    try:
        study, _ = _open_study_design(chosen)
        if chosen.summary:
            show(costs.summarise_costs(study), costs.as_text, as_json=chosen.json)
        else:
            _follow_status(study, chosen.watch, as_json=chosen.json)
    except KeyboardInterrupt:
        print()


def _follow_status(study: Study, every: int | None, *, as_json: bool) -> None:
    from tasktransfer.operate.status import Watcher
    from tasktransfer.operate.status_text import as_text

    watcher = Watcher(study)
    redraw = every is not None and not as_json and sys.stdout.isatty()
    while True:
        seen = watcher.look()
        text = (
            json_text.encode(seen, indent=None if every else 2) + "\n"
            if as_json
            else escape_text(as_text(seen))
        )
        print(CLEAR * redraw + text, end="\n" * (bool(every) and not as_json), flush=True)
        if every is None or not (seen["left"] or seen["choice_pending"]):
            return
        time.sleep(every)


def _open_study_design(chosen: argparse.Namespace) -> tuple[Study, Design]:
    """Open the study and return it with its design.

    Inputs may be missing if their digests are cached: result folders are named after them.

    Raises:
        DataError: an input is missing and its digest is not cached.
    """
    study, design = open_design(chosen, need_inputs=False)
    if study.unknown:
        raise DataError(
            f"{study.config_file}: It is unknown which results belong to this study, because its "
            "inputs are missing. Provide them:\n  " + "\n  ".join(study.absent)
        )
    return study, design


def merge(chosen: argparse.Namespace) -> None:
    """Copy the finished nodes of another results folder, or of a packed study, into this study."""
    if not chosen.other.is_file():
        _merge(chosen, chosen.other)
        return
    from tasktransfer.designs import load_config
    from tasktransfer.operate.commons.isolated import unpack_records

    config = load_config(chosen.config, parse_overrides(chosen))
    with unpack_records(chosen.other, config) as folder:
        _merge(chosen, folder)


def _merge(chosen: argparse.Namespace, other: Path) -> None:
    from tasktransfer.designs.outputs import list_dialogue_tables
    from tasktransfer.operate.merge import merge_results
    from tasktransfer.operate.merge_text import as_text, find_error

    study, design = _open_study_design(chosen)
    seen = merge_results(
        study,
        other,
        tables=list_dialogue_tables(design, study),
        everything=chosen.all,
        checkpoints=not chosen.no_checkpoints,
        dry_run=chosen.dry_run,
    )
    show(seen, as_text, as_json=chosen.json)
    if problem := find_error(seen):
        raise problem


def pack(chosen: argparse.Namespace) -> None:
    """Write the records and rows of all finished nodes into one Parquet file."""
    from tasktransfer.designs.outputs import list_dialogue_tables
    from tasktransfer.operate.pack import as_text, pack_results

    study, design = _open_study_design(chosen)
    try:
        file = chosen.provenance
        provenance = read_regular(file, MOST_PROVENANCE).decode("utf-8") if file else ""
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--provenance {chosen.provenance}: The file cannot be read ({error}). Check its path "
            "and permissions."
        ) from error
    seen = pack_results(
        study,
        chosen.out,
        tables=list_dialogue_tables(design, study),
        provenance=provenance,
        by=chosen.by.strip(),
        with_text=chosen.with_text,
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )
    show(seen, as_text, as_json=chosen.json)


def gc(chosen: argparse.Namespace) -> None:
    """List files that the given studies no longer need; delete them on request or with --yes."""
    from tasktransfer.operate.garbage import find_garbage, remove
    from tasktransfer.operate.garbage_text import as_text

    named = (argparse.Namespace(config=f, set=chosen.set) for f in chosen.config)
    studies = [_open_study_design(each)[0] for each in named]
    garbage = find_garbage(studies, records=chosen.records)
    if chosen.json:
        print(json_text.encode(garbage.as_json(), indent=2))
    else:
        print(escape_text(as_text(garbage)), end="")
    if not garbage.items:
        return
    if chosen.yes or (not chosen.json and _request_consent(len(garbage.items))):
        gone = remove(garbage)
        print(escape_text(gone.as_text()), file=sys.stderr if chosen.json else sys.stdout)
    elif not chosen.json:
        print("Nothing was deleted. Add --yes to delete these files.")


def _request_consent(count: int) -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return input(f"delete these {count:,}? [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        print()
        return False
