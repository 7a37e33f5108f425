"""Codes that replace the words of answers that quote a dialogue.

Exact match and token-F1 depend only on the words that two answers share. Coded answers have the
same scores, and the dialogue cannot be read from them. Words are numbered in order of occurrence,
so coding a coded text does not change it.
"""

from __future__ import annotations

from tasktransfer.metrics.texts import normalise_answer
from tasktransfer.tasks.card import Task


def quotes_dialogues(task: Task) -> bool:
    """Return whether answers quote the dialogue, so that shared files contain them in codes."""
    return task.kind == "span"


class WordCodes:
    """Mapping of normalised words to the codes ``w1``, ``w2`` and so on.

    Unanswerable phrases are not coded.
    """

    def __init__(self, task: Task) -> None:
        phrases = {phrase for spec in task.metrics for phrase in spec.unanswerable_phrases}
        self.phrases = sorted(map(normalise_answer, phrases))  # One order in every process.
        # The toolkit's scoring searches for phrases anywhere in an answer, so their words stay.
        self.named = {word for phrase in self.phrases for word in phrase.split()}
        self.codes: dict[str, str] = {}

    def encode_text(self, text: str) -> str:
        """Return a text with words replaced by codes, or the unanswerable phrase it begins with."""
        normal = normalise_answer(text)
        for phrase in self.phrases:
            if f"{normal} ".startswith(f"{phrase} "):
                return phrase
        return " ".join(
            word if word in self.named else self.codes.setdefault(word, f"w{len(self.codes) + 1}")
            for word in normal.split()
        )
