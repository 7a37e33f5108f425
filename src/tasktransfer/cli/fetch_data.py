"""The command that downloads published data."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from tasktransfer.cli.options import add_command, flag, folder, option
from tasktransfer.errors import ConfigError

DEFAULT_FOLDER = "releases"


def add_fetch_command(parts: Any) -> None:
    """Add ``data fetch``."""
    command = add_command(parts, "fetch", data_fetch, config=False)
    option(command, "what", "DATA", "feta: DailyDialog and Friends with 17 tasks", choices=["feta"])
    where = "folder for the archives (default: %(default)s)"
    option(command, "--out", "DIR", where, type=folder, default=DEFAULT_FOLDER)
    option(command, "--mirror", "URL", "address of a folder that holds the archives by name")
    flag(command, "--accept-licences", "accept the licences that are printed, without a question")


def data_fetch(chosen: argparse.Namespace) -> None:
    """Download published data after showing its licences."""
    from tasktransfer.datasets.feta_download import ARCHIVES, CHECKSUMS, download

    for archive in ARCHIVES:
        print(f"{archive.name} from {chosen.mirror or archive.address}")
        for licence in archive.licences:
            print(f"  {licence}")
    if not (chosen.accept_licences or _request_acceptance()):
        raise ConfigError(
            "data fetch: the licences are not accepted. Add --accept-licences if you accept them"
        )
    for archive in ARCHIVES:
        fresh = download(archive, chosen.out, chosen.mirror)
        state = "downloaded" if fresh else "already there"
        print(f"{chosen.out / archive.name}: {state}; SHA-256 in {chosen.out / CHECKSUMS}")
    print(f"set data.release to {chosen.out}; `tasktransfer data stats` checks what it holds")


def _request_acceptance() -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return input("accept these licences? [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        print()
        return False
