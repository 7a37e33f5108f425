"""Commands for a study that runs or has run: its state, sharing it, clearing up."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.options import add_command, add_set, open_study, positive
from tasktransfer.errors import DataError

if TYPE_CHECKING:
    from tasktransfer.results.study import Study

WATCH_SECONDS = 10
CLEAR = "\x1b[H\x1b[2J\x1b[3J"


def add_commands(commands: Any) -> None:
    """``status``, ``merge`` and ``gc``."""
    _add_status(commands)
    _add_merge(commands)
    _add_gc(commands)


def _add_status(commands: Any) -> None:
    command = add_command(commands, "status", status, light=True)
    command.add_argument(
        "--watch",
        metavar="SECONDS",
        nargs="?",
        type=positive,
        const=WATCH_SECONDS,
        help=f"look again every so often ({WATCH_SECONDS} s) until nothing is left",
    )
    command.add_argument(
        "--summary",
        action="store_true",
        help="what the finished trainings took instead: hours, tokens, memory, energy",
    )
    command.add_argument("--json", action="store_true", help="print JSON")


def status(chosen: argparse.Namespace) -> None:
    """Tell how far a study is: what is done, running or failed, how fast, how long still."""
    try:
        study = _known(chosen)
        if chosen.summary:
            _print_summary(study, as_json=chosen.json)
        else:
            _watch(study, chosen.watch, as_json=chosen.json)
    except KeyboardInterrupt:
        print()


def _watch(study: Study, every: int | None, *, as_json: bool) -> None:
    from tasktransfer.operate.status import Watcher
    from tasktransfer.operate.status_text import as_text

    watcher = Watcher(study)
    redraw = every is not None and not as_json and sys.stdout.isatty()
    while True:
        seen = watcher.look()
        text = json.dumps(seen, indent=None if every else 2) + "\n" if as_json else as_text(seen)
        print(CLEAR * redraw + text, end="\n" * (bool(every) and not as_json), flush=True)
        if every is None or not (seen["left"] or seen["choice_pending"]):
            return
        time.sleep(every)


def _print_summary(study: Study, *, as_json: bool) -> None:
    from tasktransfer.operate.costs import as_text, costs

    seen = costs(study)
    print(json.dumps(seen, indent=2) if as_json else as_text(seen), end="\n" * as_json)


def _known(chosen: argparse.Namespace) -> Study:
    """The study, whose inputs may be gone but must be remembered: places are named after them."""
    study = open_study(chosen, need_inputs=False)
    if study.unknown:
        raise DataError(
            "; ".join(study.absent) + "; without it nobody can tell which results belong to "
            f"{study.config_file}"
        )
    return study


# --- merge --------------------------------------------------------------------------------------


def _add_merge(commands: Any) -> None:
    command = add_command(commands, "merge", merge)
    command.add_argument("other", metavar="OTHER", type=Path, help="the other results folder")
    command.add_argument(
        "--all", action="store_true", help="every stage there, not those of this study alone"
    )
    command.add_argument("--no-checkpoints", action="store_true", help="records and predictions")
    command.add_argument("--dry-run", action="store_true", help="tell, and copy nothing")
    command.add_argument("--json", action="store_true", help="print JSON")


def merge(chosen: argparse.Namespace) -> None:
    """Take the finished trainings of another results folder into this study's."""
    from tasktransfer.operate.merge import as_text, failure, merge_results

    study = _known(chosen)
    seen = merge_results(
        study,
        chosen.other,
        everything=chosen.all,
        checkpoints=not chosen.no_checkpoints,
        dry_run=chosen.dry_run,
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )
    print(json.dumps(seen, indent=2) if chosen.json else as_text(seen), end="\n" * chosen.json)
    problem = failure(seen)
    if problem is not None:
        raise problem


# --- gc -----------------------------------------------------------------------------------------


def _add_gc(commands: Any) -> None:
    command = add_command(commands, "gc", gc, config=False)
    command.add_argument(
        "--config",
        metavar="FILE",
        nargs="+",
        default=["config.yaml"],
        help="every study that uses the results folder (default: config.yaml)",
    )
    add_set(command)
    command.add_argument("--yes", action="store_true", help="remove without asking")
    command.add_argument(
        "--records",
        action="store_true",
        help="also records and predictions of other studies and settings, which are kept otherwise",
    )
    command.add_argument("--json", action="store_true", help="print JSON")


def gc(chosen: argparse.Namespace) -> None:
    """Show what no run of the given studies needs any more, and remove it when told so."""
    from tasktransfer.operate.garbage import as_text, find_garbage, remove

    studies = []
    for file in chosen.config:
        chosen_one = argparse.Namespace(config=file, set=chosen.set)
        studies.append(_known(chosen_one))
    garbage = find_garbage(studies, records=chosen.records)
    if chosen.json:
        print(json.dumps(garbage.as_json(), indent=2))
    else:
        print(as_text(garbage), end="")
    if not garbage.items:
        return
    if chosen.yes or (not chosen.json and _agreed(len(garbage.items))):
        gone = remove(garbage)
        print(gone.as_text(), file=sys.stderr if chosen.json else sys.stdout)
    elif not chosen.json:
        print("nothing was removed; --yes removes it")


def _agreed(count: int) -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return input(f"remove these {count:,}? [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        print()
        return False
