"""Commands for your own dialogues."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_json,
    add_number,
    add_option,
    add_repeated,
    parse_folder,
)
from tasktransfer.errors import ConfigError, DataError, escape_line, print_note
from tasktransfer.files import json_text

if TYPE_CHECKING:
    from tasktransfer.datasets.declared.check import Checked

SKIP_MISSING = "skip rows and turns without a label (missing: skip), which are errors otherwise"


def add_data_commands(parts: Any) -> None:
    """Add ``data check``."""
    command = add_command(parts, "check", data_check, config=False)
    add_option(command, "files", "FILE", "files with dialogues, of any split", nargs="+", type=Path)
    what = "name of the dataset (default: derived from the file names)"
    add_option(command, "--name", "NAME", what)
    what = "folder or hub name of a model whose tokenizer counts the tokens"
    add_option(command, "--model", "MODEL", what)
    what = "maximum sequence length in tokens (default: %(default)s)"
    add_number(command, "--max-length", what, default=512)
    add_flag(command, "--skip-missing", SKIP_MISSING)
    add_json(command)


def data_check(chosen: argparse.Namespace) -> None:
    """Guess the config declaration of your own dialogue files, and list problems in them."""
    from tasktransfer.datasets.declared.check import check_files

    name = _name(chosen.name, chosen.files)
    tokens = _load_token_counter(chosen.model) if chosen.model else None
    checked = check_files(
        chosen.files, name, chosen.max_length, tokens, skip_missing=chosen.skip_missing
    )
    if chosen.json:
        print(json_text.encode(_as_json(checked), indent=2))
    else:
        print(checked.text, end="")
        for line in checked.dialogue:
            print(f"# {line}")
    for note in () if chosen.json else checked.notes:
        print_note(note)
    _refuse_problems(checked)
    print("no problem found", file=sys.stderr)


def _refuse_problems(checked: Checked) -> None:
    """Raise DataError if the files have problems."""
    lines = [*map(escape_line, checked.problems)]
    if any("set missing: skip" in line for line in lines):
        lines.append("To skip rows or turns without a label, add the option --skip-missing.")
    if lines:
        raise DataError("\n".join(lines))


def _as_json(checked: Checked) -> dict[str, Any]:
    """Return the declaration as a mapping, with notes and problems."""
    import yaml

    declared = yaml.safe_load(checked.text)
    found = {"notes": checked.notes, "problems": checked.problems, "dialogue": checked.dialogue}
    return {"declared": declared, **found}


def _name(chosen: str | None, files: Sequence[Path]) -> str:
    """Return the name of a dataset. Raises ConfigError if the chosen name cannot be used."""
    from tasktransfer.datasets import DATASETS, NAME

    taken = {dataset.name for dataset in DATASETS.values() if not dataset.has_own_files}
    if chosen is None:
        name = name_of(files)
        return f"Own{name}" if name in taken else name
    if not NAME.fullmatch(chosen):
        raise ConfigError(
            f"--name {chosen!r}: The name becomes part of file names, but has unsuitable "
            "characters. Use letters, digits, '_' and '-'."
        )
    if chosen in taken:
        raise ConfigError(
            f"--name {chosen}: The package has a dataset with this name. Choose another name."
        )
    return chosen


def name_of(files: Sequence[Path]) -> str:
    """Return a dataset's name: that of its first file, or of its folder for a split's file."""
    from tasktransfer.datasets.declared.files import SPLIT_WORDS, get_first_word

    stem = files[0].name.partition(".")[0]
    if get_first_word(stem) in SPLIT_WORDS:
        stem = files[0].absolute().parent.name
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_-")
    return f"{plain[:1].upper()}{plain[1:]}" if plain else "Own"


def _load_token_counter(model: str) -> Callable[[str], int]:
    from tasktransfer.config.places import expand_path
    from tasktransfer.encoding.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(expand_path(model), None, "encoder")
    return lambda text: len(tokenizer(text, verbose=False)["input_ids"])


def add_commands(commands: Any) -> None:
    """Add ``init``."""
    command = add_command(commands, "init", init, config=False)
    what = "files with dialogues, one per split or one for all (default: ask)"
    command.add_argument("--file", metavar="FILE", nargs="+", type=Path, help=what)
    add_option(command, "--label", "FIELD", "label to predict (default: ask)")
    what = "folder or hub name of a model, or tiny (default: ask)"
    add_repeated(command, "--model", "MODEL", what)
    what = "time budget in hours on this machine (default: ask)"
    add_option(command, "--hours", "HOURS", what)
    what = (
        "encoder, decoder or encoder_decoder, for all models (default: read from each checkpoint)"
    )
    add_option(command, "--family", "FAMILY", what)
    what = "folder with FETA's datasets, the source tasks"
    add_option(command, "--release", "DIR", what, type=Path)
    add_number(command, "--cores", "CPU cores that the study may use (default: all)")
    what = "name of the dataset (default: derived from the file names)"
    add_option(command, "--name", "NAME", what)
    add_flag(command, "--skip-missing", SKIP_MISSING)
    add_option(
        command,
        "--out",
        "DIR",
        "folder of the study (default: here)",
        type=parse_folder,
        default=Path(),
    )


def init(chosen: argparse.Namespace) -> None:
    """Create a study that finds the best source task for a label of your own dialogues."""
    import yaml

    from tasktransfer.cli.new_study import Wish, find_release, write_study
    from tasktransfer.datasets.declared.check import check_files

    files = chosen.file or [Path(_request_answer("--file", "File with your dialogues"))]
    name = _name(chosen.name, files)
    checked = check_files(files, name, None, skip_missing=chosen.skip_missing)
    _refuse_problems(checked)
    declared = yaml.safe_load(checked.text)["datasets"][name]
    labels = ", ".join(declared["tasks"])
    label = chosen.label or _request_answer("--label", f"Label to predict ({labels})")
    models = chosen.model or [_request_answer("--model", "Model: a folder, a hub name, or tiny")]
    hours = _parse_hours(
        chosen.hours or _request_answer("--hours", "Time budget in hours on this machine")
    )
    release = chosen.release or find_release()
    wish = Wish(
        *(tuple(files), label, tuple(models), hours, chosen.out, name),
        *(chosen.family, release, chosen.cores),
    )
    written = write_study(wish, declared, checked.lengths)
    for note in (*checked.notes, *written.notes):
        print_note(note)
    if release is None and written.sources:
        print(
            "note: FETA's datasets were not found, so the sources come from the tiny world, which "
            "is synthetic. Add --release to use FETA.",
            file=sys.stderr,
        )
    print(f"{chosen.out / 'config.yaml'}: {written.sources} sources, {written.size}")
    if not written.sources:
        print(
            f"note: {hours:g} h leave no time for sources, so the study only compares a "
            "trained baseline with simple references. Allow more --hours to compare sources.",
            file=sys.stderr,
        )
    print(
        f"forecast: {written.hours:.2g} h of {hours:g} h on this machine (details: tasktransfer "
        "plan --calibrate)"
    )
    here = "" if chosen.out == Path() else f"cd {chosen.out} && "
    print(f"run it: {here}tasktransfer run; results/report.html begins with the answer")


def _request_answer(name: str, question: str) -> str:
    """Ask at the terminal and return the answer. Raises ConfigError if there is no terminal."""
    if not sys.stdin.isatty():
        raise ConfigError(
            f"{name}: The option is missing, and there is no terminal to ask for it. Add the "
            "option."
        )
    answer = input(f"{question}: ").strip()
    if not answer:
        raise ConfigError(f"{name}: The option is missing ({question.lower()}). Add the option.")
    return answer


def _parse_hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if hours <= 0:
        raise ConfigError(f"--hours: Found {text!r}, expected a number above 0. Correct it.")
    return hours
