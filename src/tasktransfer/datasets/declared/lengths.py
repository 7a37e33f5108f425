"""Lengths of dialogues in comparison with a model's maximum sequence length."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tasktransfer.errors import format_quantity

MAX_TRUNCATED_FRACTION = 0.1
"""Fraction of truncated dialogues above which both ends of a dialogue are kept."""
DIALOGUE_KINDS = ("dialogue_classification", "multi_label", "multi_output")
"""Kinds whose labels are about a whole dialogue."""
MAX_SHOWN_DIALOGUES = 3
"""Number of truncated dialogues that a note names."""


@dataclass
class DialogueLengths:
    """Lengths of the dialogues of a dataset.

    Args:
        tokens: number of tokens of each dialogue.
        places: file and line of each dialogue.
    """

    tokens: list[int] = field(default_factory=list)
    places: list[str] = field(default_factory=list)

    def add(self, tokens: int, place: str) -> None:
        """Add the length of a dialogue."""
        self.tokens.append(tokens)
        self.places.append(place)

    def compute_percentile(self, percent: int) -> int:
        """Return the smallest length that ``percent`` of the dialogues do not exceed, or 0."""
        ordered = sorted(self.tokens)
        return ordered[math.ceil(percent * len(ordered) / 100) - 1] if ordered else 0

    def set_truncation(self, tasks: dict[str, dict[str, Any]], limit: int) -> list[str]:
        """Set which part of truncated dialogues each task keeps, and return notes on truncation.

        If many dialogues are truncated, tasks with labels of whole dialogues keep both ends,
        because a label may depend on either end. Tasks that declare ``keeps`` are not changed.

        Args:
            tasks: task → its section. Sections are replaced, not changed.
            limit: maximum sequence length in tokens.
        """
        long = [n for n, tokens in enumerate(self.tokens) if tokens > limit]
        if not long:
            return []
        fraction, verb = len(long) / len(self.tokens), "is" if len(long) == 1 else "are"
        listed = "; ".join(
            f"{self.places[n]}: {self.tokens[n]:,} tokens" for n in long[:MAX_SHOWN_DIALOGUES]
        )
        notes = [
            f"{format_quantity(len(long), 'dialogue')} ({100 * fraction:.0f} %) {verb} longer than "
            f"{limit:,} tokens and {verb} truncated: {listed}"
        ]
        chosen = [
            name
            for name, task in tasks.items()
            if task["kind"] in DIALOGUE_KINDS and "keeps" not in task
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
