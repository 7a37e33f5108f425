"""Commands for your own dialogues."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.cli.options import (
    add_command,
    add_flag,
    add_json_option,
    add_number,
    add_option,
    add_repeated,
    parse_folder,
)
from tasktransfer.errors import ConfigError, DataError, ModelError, escape_line, print_note
from tasktransfer.files import json_text

if TYPE_CHECKING:
    from tasktransfer.datasets.declared.check import CheckResult
    from tasktransfer.datasets.declared.input_lengths import TextsCounter

SKIP_MISSING = (
    "skip dialogues without a label (missing: skip) instead of reporting them as errors; turns "
    "without a label are always skipped"
)
RELEASES = ("releases", "data", "../shared/feta", "../shared/feta/full")
"""Folders that are searched for FETA's release."""
MAX_CHECKED_DIALOGUES = 2000
"""Maximum number of dialogues whose words are looked up in a model's vocabulary."""
SKIP_EMPTY = (
    "skip turns and dialogues without text (skip: empty) instead of reporting them as errors"
)


def add_data_commands(parts: Any) -> None:
    """Add the command ``data check``."""
    command = add_command(parts, "check", check_data_files, config=False)
    add_option(
        command,
        "files",
        "FILE",
        "check these files of dialogues, or the files of this folder; they may be of any split",
        nargs="+",
        type=Path,
    )
    what = "call the dataset by this name (default: derived from the file names)"
    add_option(command, "--name", "NAME", what)
    what = "count tokens with the tokenizer of this model, a folder or a name on the Hub"
    add_option(command, "--model", "MODEL", what)
    what = "assume a maximum sequence length of N tokens (default: %(default)s)"
    add_number(command, "--max-length", what, default=512)
    add_flag(command, "--skip-missing", SKIP_MISSING)
    add_flag(command, "--skip-empty", SKIP_EMPTY)
    add_json_option(command)


def check_data_files(args: argparse.Namespace) -> None:
    """Guess the config declaration of your own dialogue files, and list problems in them."""
    from tasktransfer.datasets.declared.check import check_files

    name = _choose_dataset_name(args.name, args.files)
    tokens = _load_token_counter(args.model) if args.model else None
    skip = {"skip_missing": args.skip_missing, "skip_empty": args.skip_empty}
    checked = check_files(args.files, name, args.max_length, tokens, **skip)
    if args.json:
        print(json_text.encode(_as_json(checked), indent=2))
    else:
        print(checked.text, end="")
        for line in checked.dialogue:
            print(f"# {line}")
    for note in () if args.json else checked.notes:
        print_note(note)
    _raise_problems(checked)
    print("No problem was found.", file=sys.stderr)


def _raise_problems(checked: CheckResult) -> None:
    """Raise DataError if the checked files have problems."""
    lines = [*map(escape_line, checked.problems)]
    if any("set missing: skip" in line for line in lines):
        lines.append("To skip dialogues without a label, add the option --skip-missing.")
    if any("set dialogue.skip: empty" in line for line in lines):
        lines.append("To skip all turns without text, add the option --skip-empty.")
    if lines:
        raise DataError("\n".join(lines))


def _as_json(checked: CheckResult) -> dict[str, Any]:
    """Convert declaration, notes, problems and an example dialogue to plain data."""
    import yaml

    declared = yaml.safe_load(checked.text)
    found = {"notes": checked.notes, "problems": checked.problems, "dialogue": checked.dialogue}
    return {"declared": declared, **found}


def _choose_dataset_name(requested: str | None, files: Sequence[Path]) -> str:
    """Return the requested name of a dataset, or a name from its files.

    Raises:
        ConfigError: the requested name has unsuitable characters or is a dataset of the package.
    """
    from tasktransfer.datasets import DATASETS, NAME

    taken = {dataset.name for dataset in DATASETS.values() if not dataset.has_own_files}
    if requested is None:
        name = derive_dataset_name(files)
        return f"Own{name}" if name in taken else name
    if not NAME.fullmatch(requested):
        raise ConfigError(
            f"--name {requested!r}: The name becomes part of file names, but contains unsuitable "
            "characters. Use only letters, digits, '_' and '-'."
        )
    if requested in taken:
        raise ConfigError(
            f"--name {requested}: The package already contains a dataset with this name. Choose "
            "another name."
        )
    return requested


def derive_dataset_name(files: Sequence[Path]) -> str:
    """Derive a dataset's name from the name of its first file.

    If this file is named after a split, the name of its folder is used.
    """
    from tasktransfer.datasets.declared.files import SPLIT_WORDS, get_first_word

    first = files[0].absolute()
    stem = first.name.partition(".")[0]
    if get_first_word(stem) in SPLIT_WORDS:
        stem = first.parent.name
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_-")
    return f"{plain[:1].upper()}{plain[1:]}" if plain else "Own"


def _load_token_counter(model: str) -> TextsCounter:
    from tasktransfer.config.places import expand_path
    from tasktransfer.encoding.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(expand_path(model), None, "encoder")
    options = {"add_special_tokens": False, "verbose": False}
    return lambda texts: [len(ids) for ids in tokenizer([*texts], **options)["input_ids"]]


def _load_texts_counter(models: Sequence[str]) -> TextsCounter:
    """Return a function that counts the tokens of texts.

    With several models, the count of a text is the largest of their tokenizers' counts. If no model
    is a local folder with a tokenizer, the counts are estimates.
    """
    from tasktransfer.config.places import expand_path
    from tasktransfer.encoding.tokenizer import load_tokenizer
    from tasktransfer.tasks.compose import estimate_tokens

    tokenizers = []
    for model in map(expand_path, models):
        if model != "tiny" and Path(model).is_dir():
            with suppress(ModelError):  # a note reports it
                tokenizers.append(load_tokenizer(model, None, "encoder"))
    if not tokenizers:
        return lambda texts: [round(estimate_tokens(text)) for text in texts]

    def count(texts: Sequence[str]) -> list[int]:
        options = {"add_special_tokens": False, "verbose": False}
        each = [tokenizer([*texts], **options)["input_ids"] for tokenizer in tokenizers]
        return [max(map(len, of_text)) for of_text in zip(*each, strict=True)]

    return count


def add_commands(commands: Any) -> None:
    """Add the command ``init``."""
    command = add_command(commands, "init", create_study, config=False)
    what = "read dialogues from these files, one per split or one for all (default: ask)"
    command.add_argument("--file", metavar="FILE", nargs="+", type=Path, help=what)
    what = (
        "read the dataset that this file declares instead of --file: the output of `data check`, "
        "as you edited it"
    )
    add_option(command, "--dataset", "YAML", what, type=Path)
    add_option(command, "--label", "FIELD", "predict this label field (default: ask)")
    what = "train this model: a folder, a name on the Hub, or tiny (default: ask)"
    add_repeated(command, "--model", "MODEL", what)
    what = "choose a study that fits this number of hours on this machine (default: ask)"
    add_option(command, "--hours", "HOURS", what)
    what = (
        "load all models as this family: encoder, decoder or encoder_decoder (default: read from "
        "each checkpoint)"
    )
    add_option(command, "--family", "FAMILY", what)
    what = (
        "take source tasks from FETA's datasets in this folder (default: the first of the folders "
        f"{', '.join(RELEASES)} that contains them, or else the synthetic tiny world)"
    )
    add_option(command, "--release", "DIR", what, type=Path)
    add_number(command, "--cores", "let the study use at most N CPU cores (default: all)")
    what = "call the dataset by this name (default: derived from the file names)"
    add_option(command, "--name", "NAME", what)
    add_flag(command, "--skip-missing", SKIP_MISSING)
    add_flag(command, "--skip-empty", SKIP_EMPTY)
    add_option(
        command,
        "--out",
        "DIR",
        "write the study into this folder (default: the current folder)",
        type=parse_folder,
        default=Path(),
    )


def create_study(args: argparse.Namespace) -> None:
    """Create a study that finds the best source task for a label of your own dialogues."""
    from tasktransfer.cli.new_study import StudyRequest, write_study

    name, declared, notes = _read_dataset(args)
    labels = ", ".join(declared["tasks"])
    label = args.label or _request_answer("--label", f"Label to predict ({labels})")
    models = args.model or [_request_answer("--model", "Model: a folder, a hub name, or tiny")]
    hours = _parse_hours(
        args.hours or _request_answer("--hours", "Time budget in hours on this machine")
    )
    notes += _list_vocabulary_notes(models, declared, name)
    release = args.release or _find_release()
    request = StudyRequest(
        *(label, tuple(models), hours, args.out, name),
        *(args.family, release, args.cores),
    )
    written = write_study(request, declared, _load_texts_counter(models))
    for note in (*notes, *written.notes):
        print_note(note)
    if written.sources and args.release is None:
        print_note(_describe_release(release))
    print(f"{args.out / 'config.yaml'}: {written.sources} sources, {written.size}")
    print(
        f"forecast: {written.hours:.2g} h of {hours:g} h on this machine (`tasktransfer plan "
        "--calibrate` shows details)"
    )
    here = "" if args.out == Path() else f"cd {shlex.quote(str(args.out))} && "
    print(f"run it: {here}{request.run_command}; results/report.html begins with the answer")


def _read_dataset(args: argparse.Namespace) -> tuple[str, dict[str, Any], list[str]]:
    """Read a new study's dataset: its name, declaration and notes.

    Raises:
        ConfigError: the declaration has an error, or options contradict each other.
        DataError: the files have problems.
    """
    import yaml

    from tasktransfer.datasets.declared.check import check_files
    from tasktransfer.datasets.declared.edited_declaration import (
        read_declaration,
        survey_declaration,
    )

    if args.dataset is not None:
        stray = {
            "--file": args.file,
            "--name": args.name,
            "--skip-missing": args.skip_missing,
            "--skip-empty": args.skip_empty,
        }
        for option, value in stray.items():
            if value:
                raise ConfigError(
                    f"{option}: The option cannot be combined with --dataset. Write the value "
                    f"into the file {args.dataset}."
                )
        edited = read_declaration(args.dataset)
        name = _choose_dataset_name(edited.name, [])
        return name, edited.section, survey_declaration(edited)
    files = args.file or [Path(_request_answer("--file", "File with your dialogues"))]
    name = _choose_dataset_name(args.name, files)
    skip = {"skip_missing": args.skip_missing, "skip_empty": args.skip_empty}
    checked = check_files(files, name, None, **skip)
    declared = yaml.safe_load(checked.text)["datasets"][name]
    if checked.problems and (task := _find_only_target(args.label, declared)):
        alone = check_files(files, name, None, **skip, task=task)
        if not alone.problems:
            note = (
                f"Only the label field {args.label} (--label) is used. The other label fields of "
                "the files are not used as sources, because one has a problem: "
                f"{escape_line(checked.problems[0])}"
            )
            declared = yaml.safe_load(alone.text)["datasets"][name]
            return name, declared, [*alone.notes, note]
    _raise_problems(checked)
    return name, declared, checked.notes


def _find_only_target(label: str | None, declared: Mapping[str, Any]) -> str | None:
    """Return the task of a label if the files also have others that a study can do without."""
    from tasktransfer.cli.new_study import find_target

    if label and len(declared["tasks"]) > 1:
        with suppress(ConfigError):  # no task has this label
            return find_target(label, declared)
    return None


def _list_vocabulary_notes(
    models: Sequence[str], declared: Mapping[str, Any], name: str
) -> list[str]:
    """Return notes on models whose tokenizer is missing or knows too few words of a dataset.

    A study with this model ends with the same error, but only after its first jobs.
    """
    from tasktransfer.config.models import ModelConfig
    from tasktransfer.config.places import expand_path
    from tasktransfer.datasets.declared.section import Declaration
    from tasktransfer.datasets.declared.source import open_source
    from tasktransfer.encoding.tokenizer import check_known_words, load_tokenizer

    source = open_source(Declaration.model_validate(declared), f"datasets.{name}")
    first = islice(source.read_dialogues("train"), MAX_CHECKED_DIALOGUES)
    words = Counter(word for dialogue in first for word in re.findall(r"\w+", dialogue.context))
    limit = float(ModelConfig.model_fields["max_unknown_words"].default)
    notes = []
    for model in map(expand_path, models):
        if model == "tiny":
            notes.append(
                "The model tiny is for trial runs. It knows few words, so its scores do not show "
                "what a pretrained model would reach."
            )
        elif Path(model).is_dir():
            try:
                check_known_words(load_tokenizer(model, None, "encoder"), words, limit, model)
            except ModelError as error:
                notes.append(f"`tasktransfer run` will end with this error: {error}")
    return notes


def _find_release() -> Path | None:
    """Find the first folder in ``RELEASES`` with both FETA datasets, or return None."""
    from tasktransfer.datasets import PACKAGE_DATASETS

    for folder in map(Path, RELEASES):
        with suppress(DataError):
            for dataset in PACKAGE_DATASETS:
                dataset.reader.find(folder)
            return folder
    return None


def _describe_release(found: Path | None) -> str:
    """Return a note on the release that was found, or on the tiny world that replaces it."""
    if found is None:
        return (
            "FETA's datasets were not found, so the sources come from the tiny world, which is "
            "synthetic. Add --release to use FETA."
        )
    return (
        f"The source tasks come from FETA's datasets in {found}. To use another folder, add "
        "--release DIR."
    )


def _request_answer(name: str, question: str) -> str:
    """Ask for an option's value at the terminal, and return the answer.

    Raises:
        ConfigError: there is no terminal, or the answer is empty.
    """
    if not sys.stdin.isatty():
        raise ConfigError(
            f"{name}: The option is missing, and there is no terminal in which to ask for the "
            "value. Add the option."
        )
    answer = input(f"{question}: ").strip()
    if not answer:
        raise ConfigError(
            f"{name}: The answer to {question!r} is empty. Answer the question, or add the option."
        )
    return answer


def _parse_hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0 < hours < float("inf"):
        raise ConfigError(
            f"--hours {text}: The value must be a positive number. Pass a number of hours."
        )
    return hours
