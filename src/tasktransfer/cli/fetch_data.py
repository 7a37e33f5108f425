"""The command that downloads published data."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.options import add_command, add_flag, add_option, parse_folder
from tasktransfer.errors import ConfigError, escape_line

if TYPE_CHECKING:
    from tasktransfer.datasets.download import Archive, Conversion

DEFAULT_FOLDER = "releases"
CORPORA = {
    "feta": "DailyDialog and Friends with 17 tasks",
    "empathetic": "EmpatheticDialogues",
    "multiwoz": "MultiWOZ 2.0",
}
"""Name in the command → content."""


def add_fetch_command(parts: Any) -> None:
    """Add the command ``data fetch``."""
    command = add_command(parts, "fetch", download_data, config=False)
    what = "; ".join(f"{name}: {content}" for name, content in CORPORA.items())
    add_option(command, "what", "DATA", what, choices=list(CORPORA))
    where = "write the archives and their data into this folder (default: %(default)s)"
    add_option(command, "--out", "DIR", where, type=parse_folder, default=DEFAULT_FOLDER)
    add_option(
        command,
        "--mirror",
        "URL",
        "download the archives from the folder at this address",
    )
    add_flag(command, "--accept-licences", "accept the printed licences without confirmation")


def download_data(args: argparse.Namespace) -> None:
    """Download published data after showing its licences."""
    archives, conversion = _find_archives(args.what)
    for archive in archives:
        print(f"{archive.name} from {args.mirror or archive.address}")
        for licence in archive.licences:
            print(f"  {licence}")
    if not (args.accept_licences or _confirm_licences()):
        raise ConfigError(
            "data fetch: The data is downloaded only after its licences have been accepted. Add "
            "--accept-licences if you accept the licences."
        )
    if conversion is None:
        _fetch_archives(archives, args)
    else:
        _fetch_converted(conversion, args)
    print(
        f"Set data.release to {args.out} in your config. `tasktransfer data stats` counts its "
        "instances."
    )


def _find_archives(what: str) -> tuple[tuple[Archive, ...], Conversion | None]:
    """Return a corpus's archives, and the function that converts them if this is necessary."""
    if what == "feta":
        from tasktransfer.datasets.feta_download import ARCHIVES

        return ARCHIVES, None
    if what == "empathetic":
        from tasktransfer.designs.empathetic.sources.download import CONVERSION
    else:
        from tasktransfer.datasets.multiwoz.download import CONVERSION
    return (CONVERSION.archive,), CONVERSION


def _fetch_archives(archives: tuple[Archive, ...], args: argparse.Namespace) -> None:
    from tasktransfer.datasets.download import CHECKSUMS, download_archive

    for archive in archives:
        fresh = download_archive(archive, args.out, args.mirror)
        state = "downloaded" if fresh else "already there"
        print(f"{args.out / archive.name}: {state}; SHA-256 in {args.out / CHECKSUMS}")


def _fetch_converted(conversion: Conversion, args: argparse.Namespace) -> None:
    from tasktransfer.datasets.download import fetch_converted_files

    notes = fetch_converted_files(conversion, args.out, args.mirror)
    path, target = args.out / conversion.archive.name, args.out / conversion.folder
    print(f"{target}: {'already there' if notes is None else f'written from {path}'}")
    for note in notes or ():
        print(escape_line(f"  {note}"))


def _confirm_licences() -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return input("Accept these licences? [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        print()
        return False
