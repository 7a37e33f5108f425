"""Lengths of dialogues next to a model's maximum sequence length."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MOST_TRUNCATED = 0.1
"""Fraction of truncated dialogues above which both ends of a dialogue are kept."""
OF_DIALOGUES = ("dialogue_classification", "multi_label", "multi_output")
"""Kinds whose labels are about a whole dialogue."""
SHOWN = 3
"""Number of truncated dialogues that a note names."""


@dataclass
class Lengths:
    """Lengths of the dialogues of a dataset.

    Args:
        tokens: number of tokens of each dialogue.
        places: file and line of each dialogue.
    """

    tokens: list[int] = field(default_factory=list)
    places: list[str] = field(default_factory=list)

    def add(self, tokens: int, place: str) -> None:
        """Add a dialogue."""
        self.tokens.append(tokens)
        self.places.append(place)

    def fit_tasks(self, tasks: dict[str, dict[str, Any]], limit: int) -> list[str]:
        """Declare what tasks keep of truncated dialogues, and return notes about them.

        If many dialogues are truncated, labels of whole dialogues keep both ends, because such a
        label may be about either end. Tasks that declare what they keep stay as they are.

        Args:
            tasks: task → its section. Sections are replaced, not changed.
            limit: maximum sequence length in tokens.
        """
        long = [n for n, tokens in enumerate(self.tokens) if tokens > limit]
        if not long:
            return []
        fraction = len(long) / len(self.tokens)
        listed = "; ".join(f"{self.places[n]}: {self.tokens[n]:,} tokens" for n in long[:SHOWN])
        notes = [
            f"{len(long):,} dialogues ({100 * fraction:.0f} %) are longer than {limit:,} tokens "
            f"and are truncated: {listed}"
        ]
        chosen = [
            name
            for name, task in tasks.items()
            if task["kind"] in OF_DIALOGUES and "keeps" not in task
        ]
        if fraction <= MOST_TRUNCATED or not chosen:
            return notes
        for name in chosen:
            tasks[name] = {**tasks[name], "keeps": "both"}
        kept = (
            f"{', '.join(chosen)}: Truncated dialogues keep both ends (keeps: both). Set start or "
            "end if the label depends on that part."
        )
        return [*notes, kept]
