"""The command to begin with."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import add_command, folder, positive


def add_commands(commands: Any) -> None:
    """``demo``."""
    command = add_command(commands, "demo", demo, config=False)
    command.add_argument(
        "--folder",
        metavar="DIR",
        type=folder,
        default=Path("tasktransfer-demo"),
        help="a new or empty folder (default: %(default)s)",
    )
    command.add_argument("--cores", metavar="N", type=positive, help="CPU cores (default: all)")
    command.add_argument(
        "--dry-run", action="store_true", help="write the files, and tell what would be run"
    )


def demo(chosen: argparse.Namespace) -> None:
    """Write the demo study into an empty folder and run it there: minutes, offline."""
    from tasktransfer.operate.demo import run_demo, write_demo

    write_demo(chosen.folder)
    figures = run_demo(chosen.folder, chosen.cores, dry_run=chosen.dry_run)
    if chosen.dry_run:
        print(f"{chosen.folder}: written; `snakemake --cores all` in it runs the study")
    else:
        print(f"figures and tables: {figures}")
        print(f"everything in one page: {figures.parent / 'report.html'}")
