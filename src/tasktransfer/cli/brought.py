"""The command ``items``, which writes the items that a user's own rater or replier answers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import add_command, add_option, open_design, parse_file
from tasktransfer.errors import ConfigError
from tasktransfer.files import json_text, replace_file


def add_commands(commands: Any) -> None:
    """Add the command ``items``."""
    command = add_command(commands, "items", write_items)
    what = "write the items to this JSONL file, one object per line"
    add_option(command, "--out", "FILE", what, type=parse_file, required=True)


def write_items(args: argparse.Namespace) -> None:
    """Write the items that your own rater or replier (`brought`) has to answer, without answers."""
    study, design = open_design(args, need_inputs=False)
    if design.items is None:
        raise ConfigError(
            f"{args.config}: A study with the design {design.name} has no items that a system of "
            "your own can answer. Pass the config of a study with the design panel or empathetic."
        )
    out: Path = args.out
    lines = [f"{json_text.encode(item, ensure_ascii=False)}\n" for item in design.items(study)]
    with replace_file(out) as part:
        part.write_text("".join(lines), encoding="utf-8")
    print(f"{out}: {len(lines):,} items")
