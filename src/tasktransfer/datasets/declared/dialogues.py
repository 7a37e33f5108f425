"""Rows as dialogues: turns, the text that a model reads, and what a field holds in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.datasets.declared.rows import SourceRow
from tasktransfer.datasets.declared.section import DialogueSection
from tasktransfer.files import json_text
from tasktransfer.files.fields import Location

LINE = re.compile(r"([^:\n]{1,40}): +(\S.*)")
"""``speaker: text``, a line of a transcript in one cell."""
ITEMS = "[]"


@dataclass(frozen=True, slots=True)
class Turn:
    """``start``: where ``speaker: text`` begins in the dialogue's context, ``end`` one past its
    last character. ``text``: without white space around it. ``values``: what the file has of the
    turn."""

    speaker: str
    text: str
    start: int
    end: int
    values: Any
    location: Location


@dataclass(frozen=True, slots=True)
class DeclaredDialogue:
    """``context``: all turns as one text, as in the package's datasets. ``values``: the row, or the
    first of the rows where a row is an utterance (``by_turn``). ``words``: all that is said."""

    id: str
    turns: tuple[Turn, ...]
    context: str
    values: Mapping[str, Any]
    by_turn: bool
    turns_field: str
    location: Location

    @property
    def words(self) -> str:
        return " ".join(turn.text for turn in self.turns)


def dialogues_of(
    rows: Iterable[SourceRow], section: DialogueSection, name: str
) -> Iterator[DeclaredDialogue]:
    """The dialogues of a file, in its order.

    Args:
        name: begins the names of dialogues that have none in the file.

    Raises:
        DataError: a row is not as the section says; names file, line, field and remedy.
    """
    if section.turns is not None:
        for row in rows:
            found = value_at(row.values, section.turns, row.location)
            yield _dialogue(row, _turns(found, section, row.location), section, name)
    elif section.id is None:
        for row in rows:
            yield _dialogue(row, [(row.values, row.location)], section, name)
    else:
        yield from _grouped(rows, section)


def _grouped(rows: Iterable[SourceRow], section: DialogueSection) -> Iterator[DeclaredDialogue]:
    """Rows that follow each other with the same id are a dialogue."""
    seen: set[int] = set()
    group: list[SourceRow] = []
    current: str | None = None
    for row in rows:
        name = _name(row, section)
        if group and name != current:
            yield _dialogue(group[0], [(r.values, r.location) for r in group], section, "")
            group = []
        if not group:
            if hash(name) in seen:  # of eight bytes: names of a million dialogues would be large
                raise row.location.error(
                    f"dialogue {name!r} has rows apart from each other",
                    "sort the file by dialogue, or give each dialogue a name of its own",
                )
            seen.add(hash(name))
        current = name
        group.append(row)
    if group:
        yield _dialogue(group[0], [(r.values, r.location) for r in group], section, "")


def _name(row: SourceRow, section: DialogueSection) -> str:
    assert section.id is not None
    value = value_at(row.values, section.id, row.location)
    if isinstance(value, bool) or not isinstance(value, str | int) or str(value).strip() == "":
        raise row.location.error(f"{section.id} is {value!r:.40}, expected the dialogue's name")
    return str(value)


def _dialogue(
    row: SourceRow, turns: Sequence[tuple[Any, Location]], section: DialogueSection, name: str
) -> DeclaredDialogue:
    named = f"{name}-{row.number}" if section.id is None else _name(row, section)
    made: list[Turn] = []
    offset = 0
    for values, location in turns:
        speaker, text = _said(values, section, location)
        spoken = f"{speaker}: {text}" if speaker else text
        made.append(Turn(speaker, text, offset, offset + len(spoken), values, location))
        offset += len(spoken) + 1
    context = " ".join(f"{t.speaker}: {t.text}" if t.speaker else t.text for t in made)
    by_turn = section.turns is None and section.id is not None
    return DeclaredDialogue(
        named, tuple(made), context, row.values, by_turn, section.turns or "", row.location
    )


def _turns(found: Any, section: DialogueSection, location: Location) -> list[tuple[Any, Location]]:
    """The turns under a field: a list of objects or texts, an object of lists, or a transcript."""
    at = location.at(str(section.turns))
    if isinstance(found, str):
        found = _of_transcript(found, section, at)
    if isinstance(found, Mapping):  # as ``datasets`` keeps lists of objects: an object of lists
        lists = {k: v for k, v in found.items() if isinstance(v, list | tuple)}
        if len({len(v) for v in lists.values()}) > 1:
            raise at.error("its lists have different lengths")
        found = [
            dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)
        ]
    if not isinstance(found, list | tuple):
        raise at.error(f"found {found!r:.40}, expected a list of turns")
    if not found:
        raise at.error("holds no turn", "remove the dialogue, or give it turns")
    return [(values, at.at(number)) for number, values in enumerate(found)]


def _of_transcript(text: str, section: DialogueSection, location: Location) -> list[Any]:
    """A cell with JSON, or with a turn a line."""
    if text.lstrip().startswith("["):
        try:
            found = json_text.loads(text)
        except ValueError as error:
            raise location.error(f"no JSON ({error})") from None
        return found if isinstance(found, list) else [found]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if section.text is None:
        return lines
    turns = []
    for line in lines:
        match = LINE.fullmatch(line) if section.speaker else None
        turn = {section.text: match[2] if match else line}
        turns.append({**turn, str(section.speaker): match[1]} if match else turn)
    return turns


def _said(values: Any, section: DialogueSection, location: Location) -> tuple[str, str]:
    """(speaker, text) of a turn, white space trimmed off."""
    if section.text is None:
        speaker, text = None, values
    else:
        text = value_at(values, section.text, location)
        speaker = value_at(values, section.speaker, location) if section.speaker else None
    key = location.at(section.text) if section.text else location
    if not isinstance(text, str):
        raise key.error(f"found {text!r:.40}, expected a text")
    if not text.strip():
        raise key.error("is empty", "remove the turn, or write what was said")
    if speaker is not None and not isinstance(speaker, str | int):
        raise location.at(str(section.speaker)).error(f"found {speaker!r:.40}, expected a name")
    return "" if speaker is None else str(speaker).strip(), text.strip()


def value_at(values: Any, field: str, location: Location) -> Any:
    """The value under a path of keys, a number being the place in a list; None where a key on the
    way is missing or null.

    Raises:
        DataError: what is on the way is no object.
    """
    if isinstance(values, Mapping) and field in values:  # a column may have a dot in its name
        return values[field]
    for key in field.split("."):
        if values is None:
            return None
        if isinstance(values, list | tuple) and key.isdecimal():
            values = values[int(key)] if int(key) < len(values) else None
            continue
        if not isinstance(values, Mapping):
            raise location.at(field).error(
                f"found {values!r:.40} before {key!r}, expected an object"
            )
        values = values.get(key)
    return values


def row_text(location: Location) -> str:
    """Where a dialogue or turn stands, as names of instances have it: ``train.jsonl:12``."""
    return f"{Path(location.file).name}:{location.row.rpartition(' ')[2]}"
