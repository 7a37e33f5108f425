"""Dialogues of a release: turns, and the text that a model reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from tasktransfer.files.data_files import parsed
from tasktransfer.files.fields import (
    Location,
    Table,
    as_table,
    each_table,
    get_list,
    get_name,
    get_table,
    get_text,
    get_texts,
    member,
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn, and where it stands in its dialogue's context (character offsets).

    ``start`` is where ``speaker: utterance`` begins, ``body`` where the utterance begins, ``end``
    one past its last character. ``raw`` holds the turn's annotations by task.
    """

    id: str | int
    speakers: tuple[str, ...]
    utterance: str
    start: int
    body: int
    end: int
    raw: Table
    location: Location


@dataclass(frozen=True, slots=True)
class AnnotatedDialogue:
    """One dialogue. ``context`` is all turns as one text, ``raw`` holds its annotations by task,
    ``metadata`` one key per task that is annotated on it."""

    id: str
    turns: tuple[Turn, ...]
    positions: dict[str | int, int]
    context: str
    raw: Table
    metadata: Table
    location: Location


def spoken(speakers: Iterable[str], utterance: str) -> str:
    """A turn as a model reads it: ``speaker: utterance``; the utterance alone if nobody speaks."""
    names = " ".join(speakers)
    return f"{names}: {utterance}" if names else utterance


def find_turn(dialogue: AnnotatedDialogue, turn_id: object, location: Location) -> Turn:
    """The turn with this id. Raises DataError if there is none."""
    if isinstance(turn_id, (str, int)) and not isinstance(turn_id, bool):
        position = dialogue.positions.get(turn_id)
        if position is not None:
            return dialogue.turns[position]
    first, last = dialogue.turns[0].id, dialogue.turns[-1].id
    raise location.error(
        f"turn {turn_id!r} does not exist; the turns run from {first!r} to {last!r}"
    )


def context_of(
    dialogue: AnnotatedDialogue, table: Table, key: str, location: Location
) -> tuple[str, tuple[int, ...]]:
    """The text of the turns whose ids are listed under ``key``, in the list's order, and where each
    of them begins in it."""
    ids = get_list(table, key, location)
    if not ids:
        raise location.at(key).error("lists no turn")
    list_place = location.at(key)
    turns = [find_turn(dialogue, value, list_place.at(index)) for index, value in enumerate(ids)]
    parts = [spoken(turn.speakers, turn.utterance) for turn in turns]
    ends = accumulate(len(part) + 1 for part in parts)
    return " ".join(parts), (0, *list(ends)[:-1])


def load_json(content: bytes, file: str) -> Table:
    """The object that a JSON file holds. Raises DataError with line and column."""
    return as_table(parsed(content, file), Location(file))


def parse_dialogues(release: Table, file: str) -> dict[str, AnnotatedDialogue]:
    """All dialogues of a release by id, in the file's order; ids and turns are checked.

    Raises DataError for wrong types, missing keys and repeated ids.
    """
    dialogues: dict[str, AnnotatedDialogue] = {}
    for table, location in each_table(release, "data", Location(file)):
        dialogue = _parse_dialogue(table, location)
        if dialogue.id in dialogues:
            raise location.error(f"duplicate dialogue_id {dialogue.id!r}")
        dialogues[dialogue.id] = dialogue
    return dialogues


def _parse_dialogue(table: Table, location: Location) -> AnnotatedDialogue:
    name = get_name(table, "dialogue_id", location)
    location = Location(location.file, dialogue=name)
    turns: list[Turn] = []
    positions: dict[str | int, int] = {}
    parts: list[str] = []
    offset = 0
    for index, (row, row_place) in enumerate(each_table(table, "dialogue", location)):
        turn = _parse_turn(row, offset, row_place)
        if turn.id in positions:
            raise row_place.error(f"duplicate turn_id {turn.id!r}")
        positions[turn.id] = index
        turns.append(turn)
        parts.append(spoken(turn.speakers, turn.utterance))
        offset = turn.end + 1
    if not turns:
        raise location.at("dialogue").error("holds no turn")
    return AnnotatedDialogue(
        id=name,
        turns=tuple(turns),
        positions=positions,
        context=" ".join(parts),
        raw=table,
        metadata=get_table(table, "dialogue_metadata", location),
        location=location,
    )


def _parse_turn(row: Table, offset: int, location: Location) -> Turn:
    turn_id = member(row, "turn_id", location)
    if not isinstance(turn_id, (str, int)) or isinstance(turn_id, bool):
        raise location.at("turn_id").error(f"{turn_id!r} is neither a text nor an integer")
    speakers = get_texts(row, "speakers", location)
    utterance = get_text(row, "utterance", location)
    if not all(speakers):
        raise location.at("speakers").error("holds an empty name; a turn of nobody has no speakers")
    body = offset + (len(" ".join(speakers)) + 2 if speakers else 0)
    return Turn(turn_id, speakers, utterance, offset, body, body + len(utterance), row, location)
