"""Codes in place of the words of answers that quote a dialogue.

Exact match and token-F1 count which words two answers have in common, and nothing else of them. In
codes scores are the same, and nobody can read the dialogue. Words are numbered as they are met, so
that texts in codes get the same codes again.
"""

from __future__ import annotations

from tasktransfer.metrics.texts import normalise_answer
from tasktransfer.tasks.card import Task


def quotes_dialogues(task: Task) -> bool:
    """Whether answers are words of the dialogue, which files that are passed on have in codes."""
    return task.kind == "span"


class WordCodes:
    """Words, normalised as the metrics do, become ``w1``, ``w2`` and so on. Phrases that say that
    there is no answer stay."""

    def __init__(self, task: Task) -> None:
        said = {phrase for spec in task.metrics for phrase in spec.unanswerable_phrases}
        self.phrases = sorted(map(normalise_answer, said))  # the same order in every process
        # One scoring looks for such a phrase anywhere in an answer; its words are no dialogue's.
        self.named = {word for phrase in self.phrases for word in phrase.split()}
        self.codes: dict[str, str] = {}

    def of(self, text: str) -> str:
        """A text in codes."""
        normal = normalise_answer(text)
        for phrase in self.phrases:
            if f"{normal} ".startswith(f"{phrase} "):
                return phrase
        return " ".join(
            word if word in self.named else self.codes.setdefault(word, f"w{len(self.codes) + 1}")
            for word in normal.split()
        )
