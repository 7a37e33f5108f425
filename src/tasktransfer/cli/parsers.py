"""Parsers of all commands and their options, which argparse has no public way to list.

This module alone uses private attributes of argparse; tests/unit/test_at_a_terminal.py checks it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import NoReturn

from tasktransfer.errors import suggest_name

_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)$", re.DOTALL)


class HelpFormatter(argparse.HelpFormatter):
    """A formatter that wraps descriptions and keeps the lines of examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("example") else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """A parser that suggests the nearest name for a typo."""

    def error(self, message: str) -> NoReturn:
        if match := _CHOICE.search(message):
            names = [name.strip(" '") for name in match[2].split(",")]
            suggestion = suggest_name(match[1], names)
            text = f"{match[1]!r} is not a valid choice."
            text += suggestion or f" Choose one of {', '.join(names)}."
            message = message[: match.start()] + text
        super().error(message)


def report_unknown_arguments(
    parser: argparse.ArgumentParser, words: Sequence[str], left: Sequence[str]
) -> NoReturn:
    """Print a command's usage and its unknown arguments, and exit.

    Args:
        parser: the parser of all commands.
        words: the command line.
        left: the arguments that no command takes.
    """
    commands = dict(iterate_parsers(parser))
    names = [" ".join(words[:count]) for count in (2, 1)]
    command = next((commands[name] for name in names if name in commands), parser)
    options = [text for action in list_options(command) for text in action.option_strings]
    suggestions = [suggest_name(word.partition("=")[0], options) for word in left]
    problem = f"The command does not have the arguments {' '.join(left)}."
    command.error(problem + "".join(dict.fromkeys(suggestions)))


def iterate_parsers(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield each command's words, such as ``data stats``, and its parser.

    The top parser comes first, with an empty text.
    """
    yield parser.prog.partition(" ")[2], parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in dict.fromkeys(action.choices.values()):
                yield from iterate_parsers(inner)


def list_command_summaries(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Map each command of a parser to its one-line purpose."""
    return {
        choice.dest: choice.help or ""
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for choice in action._choices_actions
    }


def list_options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return a parser's options and positional arguments, without commands."""
    return [a for a in parser._actions if not isinstance(a, argparse._SubParsersAction)]
