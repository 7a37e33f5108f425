"""What argparse keeps to itself and has no other way to list: the parsers of commands, and their
options. Held by tests/unit/test_at_a_terminal.py."""

from __future__ import annotations

import argparse
from collections.abc import Iterator


def every_parser(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """A parser and those of its commands, each with the words of its command ("data stats")."""
    yield parser.prog.partition(" ")[2], parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in dict.fromkeys(action.choices.values()):
                yield from every_parser(inner)


def options_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """A parser's own options and arguments, without its commands."""
    return [a for a in parser._actions if not isinstance(a, argparse._SubParsersAction)]
