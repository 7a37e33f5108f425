"""Dialogues as text: the turns as they are read, with the gold answers about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tasktransfer.datasets.declared.answers import TaskReader
from tasktransfer.datasets.declared.dialogues import DeclaredDialogue
from tasktransfer.errors import DataError, escape_line
from tasktransfer.tasks.card import Instance

MOST_TURNS = 60
MOST_CHARACTERS = 300
"""Maximum number of characters shown of a turn."""
MOST_ANSWERS = 10
"""Maximum number of answers shown per task about the whole dialogue."""


def format_dialogue(dialogue: DeclaredDialogue, readers: Sequence[TaskReader]) -> list[str]:
    """Return the lines that show a dialogue, with control characters escaped.

    Each turn has its speaker and the answers about it. Answers about the whole dialogue follow.
    """
    about: dict[int, list[str]] = {}
    whole: list[str] = []
    starts = {turn.start for turn in dialogue.turns}
    for reader in readers:
        instances = list(_read(reader, dialogue))
        on_turns = [instance for instance in instances if instance.focus in starts]
        for instance in on_turns:
            about.setdefault(instance.focus, []).append(
                f"{reader.name}: {_format_answer(instance)}"
            )
        others = [instance for instance in instances if instance.focus not in starts]
        whole += [
            f"{reader.name}: {_format_answer(instance)}" for instance in others[:MOST_ANSWERS]
        ]
        if len(others) > MOST_ANSWERS:
            whole.append(f"{reader.name}: and {len(others) - MOST_ANSWERS:,} more")
    lines = [f"a dialogue as it is read ({dialogue.location.place}):"]
    for number, turn in enumerate(dialogue.turns[:MOST_TURNS], start=1):
        speaker = f"{turn.speaker}: " if turn.speaker else ""
        answers = f"  [{'; '.join(about[turn.start])}]" if turn.start in about else ""
        lines.append(f"{number:4} {speaker}{_cut(turn.text)}{answers}")
    if len(dialogue.turns) > MOST_TURNS:
        lines.append(f"     and {len(dialogue.turns) - MOST_TURNS:,} more turns")
    return [escape_line(line) for line in [*lines, *(f"     {line}" for line in whole)]]


def _read(reader: TaskReader, dialogue: DeclaredDialogue) -> Iterator[Instance]:
    """Yield the instances up to one that cannot be read, which is reported elsewhere."""
    try:
        yield from reader.instances(dialogue)
    except DataError:
        return


def _format_answer(instance: Instance) -> str:
    answer = _cut(" + ".join(instance.target))
    asked = "; ".join(_cut(text) for text in instance.query.values())
    return f"{answer} ({asked})" if asked else answer


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
