"""Dialogues as text: their turns, with the gold answers about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tasktransfer.datasets.declared.answers import TaskReader
from tasktransfer.datasets.declared.dialogues import DeclaredDialogue
from tasktransfer.errors import DataError, escape_line
from tasktransfer.tasks.card import Instance

MAX_TURNS = 60
MAX_CHARACTERS = 300
"""Maximum number of characters shown of a turn."""
MAX_ANSWERS = 10
"""Maximum number of answers shown per task about the whole dialogue."""


def format_dialogue(dialogue: DeclaredDialogue, readers: Sequence[TaskReader]) -> list[str]:
    """Format a dialogue as lines for the terminal, with control characters escaped.

    Each turn has its speaker and the answers about it. Answers about the whole dialogue follow.
    """
    about: dict[int, list[str]] = {}
    whole: list[str] = []
    starts = {turn.start for turn in dialogue.turns}
    for reader in readers:
        instances = list(_read_valid_instances(reader, dialogue))
        on_turns = [instance for instance in instances if instance.focus in starts]
        for instance in on_turns:
            about.setdefault(instance.focus, []).append(
                f"{reader.name}: {_format_answer(instance)}"
            )
        others = [instance for instance in instances if instance.focus not in starts]
        whole += [f"{reader.name}: {_format_answer(instance)}" for instance in others[:MAX_ANSWERS]]
        if len(others) > MAX_ANSWERS:
            whole.append(f"{reader.name}: and {len(others) - MAX_ANSWERS:,} more")
    lines = [f"a dialogue as it is read ({dialogue.location.place}):"]
    for number, turn in enumerate(dialogue.turns[:MAX_TURNS], start=1):
        speaker = f"{turn.speaker}: " if turn.speaker else ""
        answers = f"  [{'; '.join(about[turn.start])}]" if turn.start in about else ""
        lines.append(f"{number:4} {speaker}{_shorten_text(turn.text)}{answers}")
    if len(dialogue.turns) > MAX_TURNS:
        lines.append(f"     and {len(dialogue.turns) - MAX_TURNS:,} more turns")
    return [escape_line(line) for line in [*lines, *(f"     {line}" for line in whole)]]


def _read_valid_instances(reader: TaskReader, dialogue: DeclaredDialogue) -> Iterator[Instance]:
    """Yield instances up to the first unreadable one, whose problem is reported elsewhere."""
    try:
        yield from reader.read_instances(dialogue)
    except DataError:
        return


def _format_answer(instance: Instance) -> str:
    answer = _shorten_text(" + ".join(instance.target))
    query = "; ".join(_shorten_text(text) for text in instance.query.values())
    return f"{answer} ({query})" if query else answer


def _shorten_text(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}..."
