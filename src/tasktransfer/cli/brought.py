"""The command ``items``, which writes the items that a user's own rater or replier answers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import add_command, add_option, open_design, parse_file
from tasktransfer.errors import ConfigError
from tasktransfer.files import json_text, replace_file


def add_commands(commands: Any) -> None:
    """Add ``items``."""
    command = add_command(commands, "items", items)
    what = "JSONL file to write, one object per item"
    add_option(command, "--out", "FILE", what, type=parse_file, required=True)


def items(chosen: argparse.Namespace) -> None:
    """Write the items that your own rater or replier (`brought`) has to answer, without answers."""
    study, design = open_design(chosen, need_inputs=False)
    if design.items is None:
        raise ConfigError(
            f"{chosen.config}: The design {design.name} has no items for your own systems. "
            "Name a config of the design panel or empathetic."
        )
    out: Path = chosen.out
    lines = [f"{json_text.encode(item, ensure_ascii=False)}\n" for item in design.items(study)]
    with replace_file(out) as part:
        part.write_text("".join(lines), encoding="utf-8")
    print(f"{out}: {len(lines):,} items")
