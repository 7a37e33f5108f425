"""What the commands share: options, and what they are read into."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasktransfer import json_text
from tasktransfer.errors import ConfigError

if TYPE_CHECKING:
    from tasktransfer.results.study import Study


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
        parser.add_argument(
            "--config",
            metavar="FILE",
            default="config.yaml",
            help="the study (default: %(default)s)",
        )
        add_set(parser)
    return parser


def add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="put a value in place of the file's, for example training.epochs=2; repeatable",
    )


def add_out(parser: argparse.ArgumentParser, what: str, *, required: bool = True) -> None:
    parser.add_argument("--out", metavar="DIR", type=folder, required=required, help=what)


def add_threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads",
        metavar="N",
        type=positive,
        default=1,
        help="CPU threads (default: %(default)s)",
    )


def folder(text: str) -> Path:
    """A folder that is there or can be made: nothing on its way is a file."""
    path = Path(text)
    for part in (path, *path.parents):
        if part.exists():
            if not part.is_dir():
                raise argparse.ArgumentTypeError(f"{part} is a file; give the name of a folder")
            break
    return path


def file(text: str) -> Path:
    """A file that is there or can be written: its name is no folder's."""
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{path} is a folder; give the name of a file")
    folder(str(path.parent))
    return path


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return int(text)


def open_study(chosen: argparse.Namespace, *, need_inputs: bool = True) -> Study:
    """The study of ``--config`` and ``--set``."""
    from tasktransfer import designs

    return designs.open_study(chosen.config, overrides(chosen), need_inputs=need_inputs)


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
