"""Commands for dialogues of one's own."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tasktransfer.cli.options import add_command, number, option
from tasktransfer.errors import DataError


def add_data_commands(parts: Any) -> None:
    """``data check``."""
    command = add_command(parts, "check", data_check, config=False)
    option(command, "files", "FILE", "files with dialogues, of any split", nargs="+", type=Path)
    option(command, "--name", "NAME", "what to call the dataset (default: by its files)")
    option(command, "--model", "MODEL", "folder or hub name whose tokens are counted")
    number(command, "--max-length", "longest input in tokens (default: %(default)s)", default=512)


def data_check(chosen: argparse.Namespace) -> None:
    """Guess how a config declares files of your own, and say what is wrong with them."""
    from tasktransfer.datasets.declared.check import check_files

    name = chosen.name or name_of(chosen.files)
    tokens = _tokens(chosen.model) if chosen.model else None
    checked = check_files(chosen.files, name, chosen.max_length, tokens)
    print(checked.text, end="")
    for note in checked.notes:
        print(f"note: {note}", file=sys.stderr)
    if checked.problems:
        raise DataError("\n".join(checked.problems))
    print("no problem found", file=sys.stderr)


def name_of(files: Sequence[Path]) -> str:
    """A dataset's name by its first file, or by its folder where the file is named by a split."""
    from tasktransfer.datasets.declared.files import SPLIT_WORDS

    stem = files[0].name.partition(".")[0]
    if stem.lower() in SPLIT_WORDS:
        stem = files[0].absolute().parent.name
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_-")
    return f"{plain[:1].upper()}{plain[1:]}" if plain else "Own"


def _tokens(model: str) -> Callable[[str], int]:
    from tasktransfer.config.places import on_disk
    from tasktransfer.encoding.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(on_disk(model), None, "encoder")
    return lambda text: len(tokenizer(text, verbose=False)["input_ids"])
