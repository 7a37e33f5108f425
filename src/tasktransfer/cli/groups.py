"""Groups of commands in the top help, and ``job``, which holds the commands of the workflow."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Mapping, Sequence

from tasktransfer.cli.parsers import Parser, list_command_summaries

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Start": ("init", "data", "demo", "doctor", "ls", "cp", "completion"),
    "Run": ("run", "plan", "validate", "status", "pilot"),
    "Read": ("report", "explain", "recommend", "regret", "rate", "items"),
    "Judge": ("replies", "sheets", "read-sheets", "judgements"),
    "Use": ("errors", "learning-curve", "export-model", "predict"),
    "Share": ("pack", "merge", "import", "export", "gc"),
    "Challenge": ("submit", "score", "leaderboard"),
}
"""Title → commands. The commands of no group are those of ``job``."""
JOB = "job"
_JOB_HELP = "run one step of a study, as the workflow does (`tasktransfer job` lists the steps)"
_COLUMN, _WIDTH = 16, 80
_INDENT = " " * (_COLUMN + 2)


class GroupedParser(Parser):
    """The parser of all commands, whose help lists them by group."""

    def format_help(self) -> str:
        """Format the help as lists of commands by group, without the steps of ``job``."""
        summaries = {**list_command_summaries(self), JOB: _JOB_HELP}
        lists = [
            _format_commands(title, names, summaries)
            for title, names in {**GROUPS, "Steps": (JOB,)}.items()
        ]
        options = "options:\n  -h, --help    show this help message and exit\n"
        options += "  --version     show the program's version and exit\n"
        text = textwrap.fill(self.description or "", _WIDTH)
        return "\n".join([self.format_usage(), f"{text}\n", options, *lists])


def remove_job_prefix(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """Remove a leading ``job`` from the words of a command line.

    ``job`` alone prints the list of its steps and exits.
    """
    if list(words[:1]) != [JOB]:
        return list(words)
    summaries = list_command_summaries(parser)
    grouped = {name for names in GROUPS.values() for name in names}
    steps = [name for name in summaries if name not in grouped]
    if len(words) == 1 or words[1] in ("-h", "--help"):
        print(f"usage: {parser.prog} {JOB} STEP ...\n")
        print(_format_commands("Steps of a study, which the workflow runs", steps, summaries))
        print(f"`{parser.prog} {JOB} STEP --help` describes a step.")
        parser.exit()
    if words[1] not in steps:
        parser.error(f"{JOB}: {words[1]!r} is not a step. Choose one of {', '.join(steps)}.")
    return list(words[1:])


def _format_commands(title: str, names: Sequence[str], summaries: Mapping[str, str]) -> str:
    lines = [f"{title}:"]
    for name in names:
        summary = " ".join(summaries[name].split())
        text = textwrap.fill(f"  {name:<{_COLUMN}}{summary}", _WIDTH, subsequent_indent=_INDENT)
        lines.append(text)
    return "\n".join(lines) + "\n"
