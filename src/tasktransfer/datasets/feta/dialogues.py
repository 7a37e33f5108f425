"""Dialogues of a release: turns, and the text that a model reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from tasktransfer.files.data_files import AGAIN, parse_json
from tasktransfer.files.fields import (
    Location,
    Table,
    as_table,
    get_list,
    get_member,
    get_name,
    get_table,
    get_text,
    get_texts,
    iterate_objects,
)


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn, with its character offsets in the dialogue's context.

    Args:
        id: name of the turn.
        speakers: names of its speakers.
        utterance: text without speakers.
        start: start of ``speaker: utterance``.
        body: start of the utterance.
        end: end of the utterance.
        raw: annotations of the turn by task.
        location: location for messages.
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
    """A dialogue with its annotations.

    Args:
        id: name of the dialogue.
        turns: all turns.
        positions: turn id → index of the turn.
        context: all turns as one text.
        raw: annotations of the dialogue by task.
        metadata: one key per task that is annotated on the dialogue.
        location: location for messages.
    """

    id: str
    turns: tuple[Turn, ...]
    positions: dict[str | int, int]
    context: str
    raw: Table
    metadata: Table
    location: Location


def format_utterance(speakers: Iterable[str], utterance: str) -> str:
    """Return ``speaker: utterance``, or the utterance alone if it has no speakers."""
    names = " ".join(speakers)
    return f"{names}: {utterance}" if names else utterance


def find_turn(dialogue: AnnotatedDialogue, turn_id: object, location: Location) -> Turn:
    """Return the turn with an id. Raises DataError if there is none."""
    if isinstance(turn_id, (str, int)) and not isinstance(turn_id, bool):
        position = dialogue.positions.get(turn_id)
        if position is not None:
            return dialogue.turns[position]
    first, last = dialogue.turns[0].id, dialogue.turns[-1].id
    raise location.error(f"there is no turn {turn_id!r}, only the turns {first!r} to {last!r}")


def join_turns(
    dialogue: AnnotatedDialogue, table: Table, key: str, location: Location
) -> tuple[str, tuple[int, ...]]:
    """Return the joined text of the turns with the ids at ``key``, and the offset of each turn.

    The turns are in the order of the list.
    """
    ids = get_list(table, key, location)
    if not ids:
        raise location.at(key).error("the list of turns is empty")
    list_place = location.at(key)
    turns = [find_turn(dialogue, value, list_place.at(index)) for index, value in enumerate(ids)]
    parts = [format_utterance(turn.speakers, turn.utterance) for turn in turns]
    ends = accumulate(len(part) + 1 for part in parts)
    return " ".join(parts), (0, *list(ends)[:-1])


def parse_json_object(content: bytes, file: str) -> Table:
    """Return the object in a JSON file. Raises DataError with line and column if not valid."""
    return as_table(parse_json(content, file), Location(file, remedy=AGAIN))


def parse_dialogues(release: Table, file: str) -> dict[str, AnnotatedDialogue]:
    """Return a mapping from id to dialogue of a release, in the order of the file.

    Raises:
        DataError: a type is wrong, a key is missing or an id is repeated.
    """
    dialogues: dict[str, AnnotatedDialogue] = {}
    for table, location in iterate_objects(release, "data", Location(file, remedy=AGAIN)):
        dialogue = _parse_dialogue(table, location)
        if dialogue.id in dialogues:
            raise location.error(f"the dialogue_id {dialogue.id!r} is repeated")
        dialogues[dialogue.id] = dialogue
    return dialogues


def _parse_dialogue(table: Table, location: Location) -> AnnotatedDialogue:
    name = get_name(table, "dialogue_id", location)
    location = Location(location.file, dialogue=name, remedy=location.remedy)
    turns: list[Turn] = []
    positions: dict[str | int, int] = {}
    parts: list[str] = []
    offset = 0
    for index, (row, row_place) in enumerate(iterate_objects(table, "dialogue", location)):
        turn = _parse_turn(row, offset, row_place)
        if turn.id in positions:
            raise row_place.error(f"the turn_id {turn.id!r} is repeated")
        positions[turn.id] = index
        turns.append(turn)
        parts.append(format_utterance(turn.speakers, turn.utterance))
        offset = turn.end + 1
    if not turns:
        raise location.at("dialogue").error("the dialogue has no turns")
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
    turn_id = get_member(row, "turn_id", location)
    if not isinstance(turn_id, (str, int)) or isinstance(turn_id, bool):
        raise location.at("turn_id").error(f"{turn_id!r} is neither a text nor an integer")
    speakers = get_texts(row, "speakers", location)
    utterance = get_text(row, "utterance", location)
    if not all(speakers):
        raise location.at("speakers").error("the list contains an empty name", "remove the name")
    body = offset + (len(" ".join(speakers)) + 2 if speakers else 0)
    return Turn(turn_id, speakers, utterance, offset, body, body + len(utterance), row, location)
