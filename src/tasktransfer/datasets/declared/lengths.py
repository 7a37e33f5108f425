"""Lengths of dialogues and inputs in comparison with a model's maximum sequence length."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tasktransfer.datasets.declared.row_fields import LIST_MARK
from tasktransfer.errors import format_quantity

TaskSections = dict[str, dict[str, Any]]
"""Task → its section in a declaration."""
MAX_TRUNCATED_FRACTION = 0.1
"""Fraction of truncated inputs above which truncation is reported and both ends are kept."""
DIALOGUE_KINDS = ("dialogue_classification", "multi_label", "multi_output", "rating")
"""Kinds whose labels are about a whole dialogue."""
MAX_SHOWN_DIALOGUES = 3
"""Number of truncated dialogues that a note names."""


@dataclass
class DialogueLengths:
    """Lengths of the dialogues of a dataset, or of the inputs of a task.

    Args:
        tokens: number of tokens of each dialogue or input.
        places: file and line of each dialogue.
        noun: what has these lengths: dialogue or input.
    """

    tokens: list[int] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    noun: str = "dialogue"

    def add(self, tokens: int, place: str, *, is_whole: bool = True) -> None:
        """Add the length of a dialogue, or of an input that is not a whole dialogue."""
        self.tokens.append(tokens)
        self.places.append(place)
        if not is_whole:
            self.noun = "input"

    def compute_percentile(self, percent: int) -> int:
        """Return the smallest length that ``percent`` of the dialogues do not exceed, or 0."""
        ordered = sorted(self.tokens)
        return ordered[math.ceil(percent * len(ordered) / 100) - 1] if ordered else 0

    def set_truncation(self, tasks: TaskSections, limit: int, turns: str | None) -> list[str]:
        """Set which part of truncated dialogues each task keeps, and return notes on truncation.

        If many dialogues are truncated, tasks with labels of whole dialogues keep both ends,
        because a label may depend on either end. Tasks that already set ``keeps`` are not changed.
        Tasks that label turns are not changed either: their inputs end with the labelled turn, so
        the end has to be kept.

        Args:
            tasks: task → its section. Sections are replaced, not changed.
            limit: maximum sequence length in tokens.
            turns: path of the list of turns, if rows have one.
        """
        long = [n for n, tokens in enumerate(self.tokens) if tokens > limit]
        if not long:
            return []
        fraction, verb = len(long) / len(self.tokens), "is" if len(long) == 1 else "are"
        longest: dict[str, int] = {}
        for n in long:
            longest[self.places[n]] = max(self.tokens[n], longest.get(self.places[n], 0))
        shown = islice(longest.items(), MAX_SHOWN_DIALOGUES)
        listed = "; ".join(f"{place}: {tokens:,} tokens" for place, tokens in shown)
        notes = [
            f"{format_quantity(len(long), self.noun)} ({100 * fraction:.0f} %) {verb} longer than "
            f"{limit:,} tokens and {verb} truncated: {listed}"
        ]
        chosen = [
            name
            for name, task in tasks.items()
            if task["kind"] in DIALOGUE_KINDS
            and "keeps" not in task
            and not _has_turn_labels(task, turns)
        ]
        if fraction <= MAX_TRUNCATED_FRACTION or not chosen:
            return notes
        for name in chosen:
            tasks[name] = {**tasks[name], "keeps": "both"}
        kept = (
            f"{', '.join(chosen)}: Truncated dialogues keep both ends (keeps: both). Set start or "
            "end if the label depends on that part."
        )
        return [*notes, kept]


def set_truncation_by_task(
    tasks: TaskSections, inputs: Mapping[str, DialogueLengths], limit: int, turns: str | None
) -> dict[str, list[str]]:
    """Set which part of truncated dialogues each task keeps, by the lengths of its own inputs.

    Args:
        inputs: task → lengths of its inputs.

    Returns:
        Task → notes, first on the lengths, then on the part that the task keeps.
    """
    notes = {}
    for task in tasks:
        changed = {task: tasks[task]}
        notes[task] = inputs[task].set_truncation(changed, limit, turns)
        tasks.update(changed)
    return notes


def _has_turn_labels(task: Mapping[str, Any], turns: str | None) -> bool:
    """Return whether a task's labels are fields of the turns in the list ``turns``."""
    paths = (task.get("label", ""), *task.get("outputs", {}).values())
    return turns is not None and any(str(path).startswith(f"{turns}{LIST_MARK}") for path in paths)
