"""Commands for dialogues of one's own."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.options import add_command, add_json, folder, number, option
from tasktransfer.errors import ConfigError, DataError, escape_line, tell_note
from tasktransfer.files import json_text

if TYPE_CHECKING:
    from tasktransfer.datasets.declared.check import Checked


def add_data_commands(parts: Any) -> None:
    """``data check``."""
    command = add_command(parts, "check", data_check, config=False)
    option(command, "files", "FILE", "files with dialogues, of any split", nargs="+", type=Path)
    option(command, "--name", "NAME", "what to call the dataset (default: by its files)")
    option(command, "--model", "MODEL", "folder or hub name whose tokens are counted")
    number(command, "--max-length", "longest input in tokens (default: %(default)s)", default=512)
    add_json(command)


def data_check(chosen: argparse.Namespace) -> None:
    """Guess how a config declares files of your own, and say what is wrong with them."""
    from tasktransfer.datasets.declared.check import check_files

    name = _name(chosen.name, chosen.files)
    tokens = _tokens(chosen.model) if chosen.model else None
    checked = check_files(chosen.files, name, chosen.max_length, tokens)
    if chosen.json:
        print(json_text.printed(_as_json(checked), indent=2))
    else:
        print(checked.text, end="")
        for line in checked.dialogue:
            print(f"# {line}")
    for note in () if chosen.json else checked.notes:
        tell_note(note)
    if checked.problems:
        raise DataError("\n".join(map(escape_line, checked.problems)))
    print("no problem found", file=sys.stderr)


def _as_json(checked: Checked) -> dict[str, Any]:
    """The declaration as a mapping, with what was found."""
    import yaml

    declared = yaml.safe_load(checked.text)
    found = {"notes": checked.notes, "problems": checked.problems, "dialogue": checked.dialogue}
    return {"declared": declared, **found}


def _name(chosen: str | None, files: Sequence[Path]) -> str:
    """Return the name of a dataset. Raises ConfigError if the one that is chosen cannot be used."""
    from tasktransfer.datasets import DATASETS, NAME

    taken = {dataset.name for dataset in DATASETS.values() if not dataset.has_own_files}
    if chosen is None:
        name = name_of(files)
        return f"Own{name}" if name in taken else name
    if not NAME.fullmatch(chosen):
        raise ConfigError(
            f"--name {chosen!r}: is part of file names; use letters, digits, '_' and '-'"
        )
    if chosen in taken:
        raise ConfigError(f"--name {chosen}: is a dataset of the package; give another name")
    return chosen


def name_of(files: Sequence[Path]) -> str:
    """A dataset's name by its first file, or by its folder where the file is named by a split."""
    from tasktransfer.datasets.declared.files import SPLIT_WORDS, first_word

    stem = files[0].name.partition(".")[0]
    if first_word(stem) in SPLIT_WORDS:
        stem = files[0].absolute().parent.name
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_-")
    return f"{plain[:1].upper()}{plain[1:]}" if plain else "Own"


def _tokens(model: str) -> Callable[[str], int]:
    from tasktransfer.config.places import on_disk
    from tasktransfer.encoding.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(on_disk(model), None, "encoder")
    return lambda text: len(tokenizer(text, verbose=False)["input_ids"])


def add_commands(commands: Any) -> None:
    """``init``."""
    command = add_command(commands, "init", init, config=False)
    what = "dialogues, a file for each split or one for all; asked for if it is left out"
    command.add_argument("--file", metavar="FILE", nargs="+", type=Path, help=what)
    option(command, "--label", "FIELD", "the label that is to be predicted")
    option(command, "--model", "MODEL", "folder or hub name of the model, or tiny")
    option(command, "--hours", "HOURS", "time that there is on this machine", type=float)
    option(command, "--family", "FAMILY", "encoder, decoder or encoder_decoder (default: it tells)")
    option(command, "--release", "DIR", "folder with FETA's datasets, to train on first", type=Path)
    number(command, "--cores", "CPU cores that the study may use (default: all)")
    option(command, "--name", "NAME", "what to call the dataset (default: by its files)")
    option(
        command, "--out", "DIR", "folder of the study (default: here)", type=folder, default=Path()
    )


def init(chosen: argparse.Namespace) -> None:
    """Write a study that says what to train on before a label of your own dialogues."""
    import yaml

    from tasktransfer.cli.new_study import Wish, found_release, write_study
    from tasktransfer.datasets.declared.check import check_files

    files = chosen.file or [Path(_asked("--file", "File with your dialogues"))]
    name = _name(chosen.name, files)
    checked = check_files(files, name)
    if checked.problems:
        raise DataError("\n".join(map(escape_line, checked.problems)))
    declared = yaml.safe_load(checked.text)["datasets"][name]
    labels = ", ".join(declared["tasks"])
    label = chosen.label or _asked("--label", f"Label to predict ({labels})")
    model = chosen.model or _asked("--model", "Model: a folder, a hub name, or tiny")
    hours = chosen.hours or _hours(_asked("--hours", "Hours that there are on this machine"))
    release = chosen.release or found_release()
    wish = Wish(
        *(tuple(files), label, model, hours, chosen.out, name),
        *(chosen.family, release, chosen.cores),
    )
    written = write_study(wish, declared)
    for note in checked.notes:
        tell_note(note)
    if release is None:
        print(
            "note: no release of FETA's datasets was found: the sources are of the generated tiny "
            "world, whose English is made up; give --release",
            file=sys.stderr,
        )
    print(f"{chosen.out / 'config.yaml'}: {written.sources} sources, {written.size}")
    print(
        f"forecast: {written.hours:.2g} h on this machine (tasktransfer plan --calibrate says more)"
    )
    here = "" if chosen.out == Path() else f"cd {chosen.out} && "
    print(f"run it: {here}snakemake --cores all; the answer begins results/report.html")


def _asked(name: str, question: str) -> str:
    """An answer from the terminal. Raises ConfigError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise ConfigError(f"{name}: is missing, and there is no terminal to ask at: give it")
    answer = input(f"{question}: ").strip()
    if not answer:
        raise ConfigError(f"{name}: is missing: {question.lower()}")
    return answer


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if hours <= 0:
        raise ConfigError(f"--hours: found {text!r}, expected a number above 0")
    return hours
