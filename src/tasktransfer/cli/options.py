"""Options that several commands share, and the conversion of their values."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer.errors import ConfigError, escape_text
from tasktransfer.files import json_text

if TYPE_CHECKING:
    from tasktransfer.designs.design import Design
    from tasktransfer.results.study import Study


DEFAULT_CONFIG = "config.yaml"


def add_command(
    commands: Any, name: str, function: Any, *, config: bool = True, light: bool = False
) -> argparse.ArgumentParser:
    """Add a command whose help is the docstring of ``function``.

    Args:
        function: the function that runs the command, with the parsed arguments.
        config: add ``--config`` and ``--set``.
        light: the command needs the standard library only and runs with little memory.
    """
    text = function.__doc__
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text[0].lower() + text[1:].rstrip("."), description=text
    )
    parser.set_defaults(command=function, light=light)
    if config:
        what = (
            "read the study from this config file; `--config` can be omitted (default: %(default)s)"
        )
        parser.add_argument(
            "--config", "--configfile", metavar="FILE", help=what, default=DEFAULT_CONFIG
        )
        add_set_option(parser)
    return parser


def add_option(
    parser: argparse.ArgumentParser, name: str, metavar: str, text: str, **more: Any
) -> None:
    """Add an option with a value, or a positional argument for a name without dashes.

    Args:
        more: further keywords of argparse's ``add_argument``.
    """
    parser.add_argument(name, metavar=metavar, help=text, **more)


def add_number(parser: argparse.ArgumentParser, name: str, text: str, **more: Any) -> None:
    """Add an option with a positive integer."""
    add_option(parser, name, "N", text, type=parse_positive, **more)


def add_repeated(parser: argparse.ArgumentParser, name: str, metavar: str, text: str) -> None:
    """Add an option that may be repeated, and whose value is a list."""
    add_option(
        parser, name, metavar, f"{text}; may be given several times", action="append", default=[]
    )


def add_flag(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    parser.add_argument(name, action="store_true", help=text)


def add_set_option(parser: argparse.ArgumentParser) -> None:
    what = "override a value of the config file, for example training.epochs=2"
    add_repeated(parser, "--set", "KEY=VALUE", what)


def add_out_option(parser: argparse.ArgumentParser, what: str, *, required: bool = True) -> None:
    add_option(parser, "--out", "DIR", what, type=parse_folder, required=required)


def add_threads_option(parser: argparse.ArgumentParser) -> None:
    add_number(parser, "--threads", "use N CPU threads (default: %(default)s)", default=1)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    add_flag(parser, "--json", "print the result as JSON")


def print_result(result: Any, as_text: Callable[[Any], str], *, as_json: bool) -> None:
    """Print a command's result as JSON, or as text from ``as_text``."""
    text = f"{json_text.encode(result, indent=2)}\n" if as_json else escape_text(as_text(result))
    print(text, end="")


def parse_folder(text: str) -> Path:
    """Convert an option's text to a folder that exists or can be created.

    Raises:
        argparse.ArgumentTypeError: a part of the path is a file, or the folder is not writable.
    """
    if not text:
        raise argparse.ArgumentTypeError("The name of the folder is empty. Pass a name.")
    with _convert_write_errors(text):
        path = Path(text)
        nearest = (part for part in (path, *path.parents) if part.exists() or part.is_symlink())
        there = next(nearest, Path())
        if not there.is_dir():
            what = "is a file" if there.exists() else "is a broken link"
            raise argparse.ArgumentTypeError(f"{there} {what}. Choose a folder.")
        tempfile.TemporaryFile(dir=there).close()
    return path


def parse_file(text: str) -> Path:
    """Convert an option's text to the path of an output file.

    Raises:
        argparse.ArgumentTypeError: the path is a folder or a device, or its folder is not writable.
    """
    if not text:
        raise argparse.ArgumentTypeError("The name of the file is empty. Pass a name.")
    with _convert_write_errors(text):
        path = Path(text)
        if path.is_dir():
            raise argparse.ArgumentTypeError(f"{path} is a folder. Choose a file.")
        is_device = path.absolute().is_relative_to("/dev") and path.is_symlink()
        if is_device or (path.exists() and not path.is_file()):
            raise argparse.ArgumentTypeError(
                f"The path {path} is a device or a pipe. Choose a regular file."
            )
    parse_folder(str(path.parent))
    return path


@contextmanager
def _convert_write_errors(text: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"The path {text[:200]} cannot be written ({error.strerror}). Choose another name."
        ) from error


LARGEST = 10**9
"""Largest number that an option accepts; C libraries overflow above it."""


def parse_positive(text: str) -> int:
    """Convert an option's text to a positive integer."""
    digits = text.isascii() and text.isdecimal() and len(text) <= len(str(LARGEST))
    if not digits or not 1 <= int(text) <= LARGEST:
        raise argparse.ArgumentTypeError(
            f"The value is {text[:20]!r}. Pass a whole number from 1 to {LARGEST:,}."
        )
    return int(text)


def open_study(args: argparse.Namespace, *, need_inputs: bool = True) -> Study:
    """Open the study that ``--config`` and ``--set`` specify."""
    from tasktransfer import designs

    return designs.open_study(args.config, parse_overrides(args), need_inputs=need_inputs)


def open_study_with_design(
    design: str, why: str, args: argparse.Namespace, *, need_inputs: bool = True
) -> Study:
    """Open the study for a command that supports a single design.

    Args:
        design: name of the design.
        why: the reason why other designs do not support the command, for the error message.

    Raises:
        ConfigError: the study has another design.
    """
    from tasktransfer.designs import load_config

    found = load_config(args.config, parse_overrides(args)).design
    if found != design:
        raise ConfigError(
            f"{args.config}: The study has the design {found}, and {why}. Pass the config of a "
            f"study with the design {design}."
        )
    return open_study(args, need_inputs=need_inputs)


def open_design(args: argparse.Namespace, *, need_inputs: bool = True) -> tuple[Study, Design]:
    """Open the study that ``--config`` and ``--set`` specify, and return it with its design."""
    from tasktransfer import designs

    study = open_study(args, need_inputs=need_inputs)
    return study, designs.get_design(study.config)


def parse_overrides(args: argparse.Namespace) -> dict[str, Any]:
    """Parse the options ``--set a.b=value`` to a nested mapping."""
    from tasktransfer.config import from_options

    return from_options(args.set)


def find_node(study: Study, digest: str, kind: type[Any]) -> Any:
    """Find the study's node with a given digest.

    Raises:
        ConfigError: the study has no node with this digest, or it is of another kind.
    """
    node = study.get_node(digest)
    if not isinstance(node, kind):
        raise ConfigError(
            f"{digest}: This node is of kind {type(node).__name__.lower()} ({node.label}), but "
            f"the command needs a node of kind {kind.__name__.lower()}. Pass the digest of another "
            "node."
        )
    return node
