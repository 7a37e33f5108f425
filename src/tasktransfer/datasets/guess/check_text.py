"""Text that ``tasktransfer data check`` prints: a declaration with comments, and short lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from tasktransfer.config.yaml_text import format_comment, format_yaml
from tasktransfer.datasets.guess.columns import collect_columns
from tasktransfer.datasets.guess.declaration import Guess
from tasktransfer.errors import format_quantity

MAX_SHOWN = 20
"""Number of listed problems per file, and of listed lines per problem."""
MIN_REPORTED_RATIO = 10
"""Ratio of the most to the least frequent label above which the ratio is printed."""

Target = tuple[str, ...]


@dataclass
class DeclarationCounts:
    """Numbers in the comments of a declaration.

    Args:
        rows: number of rows in all files.
        turns: number of turns in all dialogues.
        dialogues: split → number of dialogues.
        labels: task → split → label → number of occurrences.
    """

    rows: int = 0
    turns: int = 0
    dialogues: Counter[str] = field(default_factory=Counter)
    labels: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)


def format_declaration(
    name: str, section: Mapping[str, Any], guess: Guess, counts: DeclarationCounts
) -> str:
    """Format a dataset's declaration as YAML with commented numbers of dialogues and labels.

    Args:
        name: name of the dataset.
        section: the declaration, a value under ``datasets``.
        guess: source of the declaration's tasks.
        counts: numbers for the comments.
    """
    sizes = ", ".join(f"{count:,} {split}" for split, count in counts.dialogues.items())
    noun = "dialogue" if counts.dialogues.total() == 1 else "dialogues"
    head = f"# {sizes} {noun}, {format_quantity(counts.turns, 'turn')}\n"
    if not sizes:
        head = f"# {format_quantity(counts.rows, 'row')}, no task found\n"
    body = format_yaml({"datasets": {name: section}})
    body, heading, tasks = body.partition("\n    tasks:")
    for task in guess.tasks:
        label_counts = sum(counts.labels.get(task, {}).values(), Counter[str]())
        note = _describe_label_counts(label_counts or guess.counts[task], guess.tasks[task]["kind"])
        if task in guess.numbers and guess.tasks[task]["kind"] != "multiple_choice":
            note += (
                f"; {guess.numbers[task]} in the file, read as labels (for ratings set kind: "
                "rating and scale)"
            )
        key = format_yaml({task: {}}).removesuffix(" {}\n")
        tasks = tasks.replace(f"\n      {key}\n", f"\n      {key}  {format_comment(note)}\n", 1)
    return head + body + heading + tasks


def _describe_label_counts(counts: Counter[str], kind: str) -> str:
    if kind in ("question_answering", "span", "multiple_choice"):
        return f"{sum(counts.values()):,} answers"
    most = ", ".join(f"{label:.40} ({count:,})" for label, count in counts.most_common(5))
    text = f"{len(counts):,} labels: {most}{', ...' if len(counts) > 5 else ''}"
    if counts and max(counts.values()) > MIN_REPORTED_RATIO * min(counts.values()):
        ratio = max(counts.values()) / min(counts.values())
        text += f"; the largest is {ratio:,.0f} times the smallest"
    return text


def describe_difference(answer: Sequence[Target], earlier: Sequence[Target]) -> str:
    """Describe the first answers that differ, as in "'a' here and 'b' there"."""
    pairs = zip_longest(answer, earlier, fillvalue=())
    here, there = next((pair for pair in pairs if pair[0] != pair[1]), ((), ()))
    return f"{', '.join(here)!r:.60} here and {', '.join(there)!r:.60} there"


def format_first_names(names: Sequence[str]) -> str:
    """Format the first names, and count the others."""
    return ", ".join(shorten_problems(names, ""))


def explain_missing_label(rows: Sequence[Mapping[str, Any]]) -> str:
    """Describe, with a remedy, a file in which no field looks like a label."""
    columns = collect_columns(rows)
    constant = [
        name
        for name, values in columns.items()
        if len(values) == len(rows) > 1 and len({repr(value) for value in values}) == 1
    ]
    also = ""
    if constant:
        also = f" ({format_first_names(constant)}: the value is the same in every row)"
    return (
        f"No field looks like a label{also}. Declare a task in a YAML file, with its kind and its "
        f"label (fields: {', '.join(rows[0])}), for `tasktransfer init --dataset`."
    )


def shorten_problems(problems: Sequence[str], what: str = "in the same file") -> list[str]:
    """Return the first problems of a kind, and a line that counts the others."""
    more = len(problems) - MAX_SHOWN
    return [*problems[:MAX_SHOWN], *([f"and {more:,} more {what}".rstrip()] if more > 0 else [])]
