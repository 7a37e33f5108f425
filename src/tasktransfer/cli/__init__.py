"""The command line: thin commands over the library.

Every command imports what it needs when it runs. This keeps ``--help``, ``plan`` and the start of
a training run fast. Each module here holds the commands of one phase and adds them to the parser.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from tasktransfer import __version__
from tasktransfer.cli import (
    analyse,
    brought,
    challenge,
    cluster,
    commons,
    describe,
    find_errors,
    health,
    judgements,
    listing,
    nodes,
    operate,
    own_data,
    panel,
    prepare,
    recommend,
    run_study,
    sheets,
    use_model,
)
from tasktransfer.cli.examples import add_examples
from tasktransfer.cli.groups import GroupedParser, remove_job_prefix
from tasktransfer.cli.host import PROGRAM as PROGRAM_OF_HOST
from tasktransfer.cli.options import DEFAULT_CONFIG
from tasktransfer.cli.parsers import Parser, report_unknown_arguments
from tasktransfer.errors import (
    StorageError,
    TaskTransferError,
    as_memory_shortage,
    as_plugin_error,
    as_storage_error,
    check_memory_limit,
    print_message,
)
from tasktransfer.files.terminal import apply_colour
from tasktransfer.results.state import INTERRUPTED
from tasktransfer.training import host

PROGRAM = "tasktransfer"

PHASES = (
    describe,
    run_study,
    listing,
    health,
    own_data,
    prepare,
    nodes,
    cluster,
    operate,
    commons,
    analyse,
    challenge,
    judgements,
    panel,
    brought,
    sheets,
    recommend,
    find_errors,
    use_model,
)
"""Modules of commands, in the order in which ``--help`` lists them."""


HOST_COMMANDS = (
    nodes.train_stage,
    nodes.evaluate_node,
    prepare.encode_dataset_for_model,
    prepare.make_checkpoint,
)
"""Commands that run many times in a workflow and import torch. The host process runs them."""


def run_and_leave() -> NoReturn:
    """Run the command of the command line, and exit without Python's clean-up.

    The workflow's host process runs the commands of ``HOST_COMMANDS``. Python's clean-up would take
    torch a second or two, during which the device is not free for the next run.
    """
    args = parse_arguments(sys.argv[1:])
    code = None
    if args.command in HOST_COMMANDS:
        # Commands without ``--threads`` are jobs of one thread.
        code = host.run_in_host(sys.argv[1:], getattr(args, "threads", 1), PROGRAM_OF_HOST)
    if code is None:
        code = run_command(args)
    os._exit(_flush_output() or code)


def _flush_output() -> int:
    """Flush standard output, and return 0 or the exit code of a write error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return 0
    except OSError as error:
        problem = as_storage_error(error) or StorageError(str(error))
        print_message(f"{apply_colour('error:', 'red', sys.stderr)} {problem}")
        return problem.exit_code
    finally:
        with suppress(OSError):
            sys.stderr.flush()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    The exit code is 0, the exit code of the error (see ``errors``), or 130 after Ctrl-C.
    """
    return run_command(parse_arguments(sys.argv[1:] if arguments is None else arguments))


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line into options, which include the command as ``command``.

    Arguments after ``run … --`` go to Snakemake. The config file of a study may be given without
    ``--config``, and a step of the workflow with or without ``job`` before it.
    """
    parser, words = make_parser(), list(arguments)
    for word in words:
        if any("\ud800" <= character <= "\udfff" for character in word):
            parser.error(f"{ascii(word)[1:-1]}: The name is not valid UTF-8. Rename the file.")
    words = remove_job_prefix(parser, words)
    end = words.index("--") if words[:1] == ["run"] and "--" in words else len(words)
    args, left = parser.parse_known_args(words[:end])
    args.snakemake_options = words[end + 1 :]
    if len(left) == 1 and not left[0].startswith("-") and _has_default_config(args):
        args.config = left[0]
    elif left:
        report_unknown_arguments(parser, words, left)
    return args


def _has_default_config(args: argparse.Namespace) -> bool:
    return getattr(args, "config", None) == DEFAULT_CONFIG


def run_command(args: argparse.Namespace) -> int:
    """Run the parsed command, print any error, and return the exit code."""
    try:
        if not args.light:
            check_memory_limit()
        args.command(args)
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader of a pipe (head, less) has closed it. Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        # Libraries turn a lack of memory into errors of other kinds; some of ours are caused by it.
        problem = as_memory_shortage(error) or (
            error
            if isinstance(error, TaskTransferError)
            else as_storage_error(error) or as_plugin_error(error)
        )
        if problem is None:
            raise
        print_message(f"{apply_colour('error:', 'red', sys.stderr)} {problem}")
        return problem.exit_code
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Create the parser with all commands."""
    parser = GroupedParser(
        prog=PROGRAM,
        description=(
            "Run studies of dialogue models: transfer between tasks, selection of source tasks, "
            "probing and response rating. Start with the command `demo`, or create a study of "
            "your own dialogues with `init` and run it with `run`."
        ),
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=Parser
    )
    for phase in PHASES:
        phase.add_commands(commands)
    add_examples(parser)
    parser.set_defaults(parser=parser)  # `completion` lists the commands and options in it
    return parser
