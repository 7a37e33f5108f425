"""What the commands share: options, and what they are read into."""

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
    """``light``: a command of the standard library alone, which runs in any memory."""
    text = function.__doc__
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text[0].lower() + text[1:].rstrip("."), description=text
    )
    parser.set_defaults(command=function, light=light)
    if config:
        what = "config file of the study; `--config` may be left out (default: %(default)s)"
        parser.add_argument(
            "--config", "--configfile", metavar="FILE", help=what, default=DEFAULT_CONFIG
        )
        add_set(parser)
    return parser


def option(
    parser: argparse.ArgumentParser, name: str, metavar: str, text: str, **more: Any
) -> None:
    """An option with a value, or (``name`` without dashes) an argument; ``more`` as argparse has
    it."""
    parser.add_argument(name, metavar=metavar, help=text, **more)


def number(parser: argparse.ArgumentParser, name: str, text: str, **more: Any) -> None:
    """An option whose value is a whole number of 1 or more."""
    option(parser, name, "N", text, type=positive, **more)


def several(parser: argparse.ArgumentParser, name: str, metavar: str, text: str) -> None:
    """An option that may be given several times; its value is a list."""
    option(parser, name, metavar, f"{text}; repeatable", action="append", default=[])


def flag(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    parser.add_argument(name, action="store_true", help=text)


def add_set(parser: argparse.ArgumentParser) -> None:
    what = "put a value in place of the file's, for example training.epochs=2"
    several(parser, "--set", "KEY=VALUE", what)


def add_out(parser: argparse.ArgumentParser, what: str, *, required: bool = True) -> None:
    option(parser, "--out", "DIR", what, type=folder, required=required)


def add_threads(parser: argparse.ArgumentParser) -> None:
    number(parser, "--threads", "CPU threads (default: %(default)s)", default=1)


def add_json(parser: argparse.ArgumentParser) -> None:
    flag(parser, "--json", "print JSON")


def show(seen: Any, as_text: Callable[[Any], str], *, as_json: bool) -> None:
    """Print plain data as JSON, or for people."""
    text = f"{json_text.printed(seen, indent=2)}\n" if as_json else escape_text(as_text(seen))
    print(text, end="")


def folder(text: str) -> Path:
    """Convert an option's text to a folder that is there or can be made.

    Raises:
        argparse.ArgumentTypeError: a part of the path is a file, or nothing can be written there.
    """
    if not text:
        raise argparse.ArgumentTypeError("the name is empty; give the name of a folder")
    with _unwritable_refused(text):
        path = Path(text)
        nearest = (part for part in (path, *path.parents) if part.exists() or part.is_symlink())
        there = next(nearest, Path())
        if not there.is_dir():
            what = "is a file" if there.exists() else "is a link to nothing"
            raise argparse.ArgumentTypeError(f"{there} {what}; give the name of a folder")
        tempfile.TemporaryFile(dir=there).close()
    return path


def file(text: str) -> Path:
    """Convert an option's text to a file that is there or can be written.

    Raises:
        argparse.ArgumentTypeError: it is a folder or a device, or nothing can be written there.
    """
    if not text:
        raise argparse.ArgumentTypeError("the name is empty; give the name of a file")
    with _unwritable_refused(text):
        path = Path(text)
        if path.is_dir():
            raise argparse.ArgumentTypeError(f"{path} is a folder; give the name of a file")
        is_device = path.absolute().is_relative_to("/dev") and path.is_symlink()
        if is_device or (path.exists() and not path.is_file()):
            raise argparse.ArgumentTypeError(
                f"{path} is a device or a pipe, which a file would replace; give the name of a file"
            )
    folder(str(path.parent))
    return path


@contextmanager
def _unwritable_refused(text: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"{text[:200]}: cannot be written ({error.strerror}); give another name"
        ) from error


LARGEST = 10**9
"""Largest number that an option takes: above it libraries of C overflow."""


def positive(text: str) -> int:
    """Convert an option's text to a whole number of 1 or more."""
    digits = text.isascii() and text.isdecimal() and len(text) <= len(str(LARGEST))
    if not digits or not 1 <= int(text) <= LARGEST:
        raise argparse.ArgumentTypeError(
            f"{text[:20]!r} is no whole number of 1 or more (up to {LARGEST:,})"
        )
    return int(text)


def open_study(chosen: argparse.Namespace, *, need_inputs: bool = True) -> Study:
    """The study of ``--config`` and ``--set``."""
    from tasktransfer import designs

    return designs.open_study(chosen.config, overrides(chosen), need_inputs=need_inputs)


def open_study_of(
    design: str, why: str, chosen: argparse.Namespace, *, need_inputs: bool = True
) -> Study:
    """The study of ``--config`` and ``--set``, for a command that only one design has a use for;
    ``why`` says what the others lack.

    Raises:
        ConfigError: the study is of another design.
    """
    from tasktransfer.designs import load_config

    found = load_config(chosen.config, overrides(chosen)).design
    if found != design:
        raise ConfigError(
            f"{chosen.config}: design is {found}, and {why}: give a config with design: {design}"
        )
    return open_study(chosen, need_inputs=need_inputs)


def open_design(chosen: argparse.Namespace, *, need_inputs: bool = True) -> tuple[Study, Design]:
    """The study of ``--config`` and ``--set``, and its design."""
    from tasktransfer import designs

    study = open_study(chosen, need_inputs=need_inputs)
    return study, designs.design_of(study.config)


def overrides(chosen: argparse.Namespace) -> dict[str, Any]:
    """The ``--set a.b=value`` options as a nested mapping."""
    from tasktransfer.config.overrides import from_options

    return from_options(chosen.set)


def read_json(option: str, text: str) -> Any:
    """JSON text, or the JSON of a file (``@file``)."""
    try:
        return json_text.read(Path(text[1:])) if text.startswith("@") else json_text.loads(text)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{option}: not JSON ({error}); give JSON text or @file") from error


def node_of(study: Study, digest: str, kind: type[Any]) -> Any:
    """The node of a study with a digest.

    Raises:
        ConfigError: the study has none, or it is of another kind.
    """
    node = study.node(digest)
    if not isinstance(node, kind):
        raise ConfigError(f"{digest} is a {type(node).__name__.lower()}: {node.label}")
    return node
