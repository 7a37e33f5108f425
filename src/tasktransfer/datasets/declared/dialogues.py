"""Conversion of rows to dialogues: turns, the text that a model reads, and values of fields."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.datasets.declared import cells
from tasktransfer.datasets.declared.row_fields import (
    LIST_MARK,
    SourceRow,
    build_sort_keys,
    find_lists,
    get_joined_text,
    get_last_key,
    get_value,
)
from tasktransfer.datasets.declared.section import DialogueName, DialogueSection
from tasktransfer.errors import DataError, describe_wrong_value, format_value
from tasktransfer.files.fields import Location

TRANSCRIPT_LINE = re.compile(r"([^:\n]{1,40}): +(\S.*)")
"""``speaker: text``, one line of a transcript in a cell."""
SKIP_EMPTY = "set dialogue.skip: empty"

Report = Callable[[DataError], object]
"""A function that records the problem of a dialogue, which is then left out."""


class EmptyTurnError(DataError):
    """A turn has no text, or a dialogue has no turns.

    A caller can report the problem with another way to skip the turn or dialogue (``suggest``).
    """

    def __init__(self, location: Location, problem: str, remedy: str) -> None:
        self.location, self.problem, self.remedy = location, problem, remedy
        super().__init__(str(self.suggest(SKIP_EMPTY)))

    def suggest(self, option: str) -> DataError:
        """Return the error with a suggested option that skips the turn or dialogue."""
        return self.location.error(self.problem, f"{self.remedy}, or {option} to skip it")


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a dialogue.

    Args:
        speaker: name of the speaker. Empty if there is none.
        text: text without outer white space.
        start: offset of ``speaker: text`` in the dialogue's context.
        end: offset after its last character.
        values: object or text of the turn in the file. Turns share it if ``dialogue.text`` lists
            several fields.
        location: location for messages.
        place: position of ``values`` in the dialogue, in the order of the file, from 0.
    """

    speaker: str
    text: str
    start: int
    end: int
    values: Any
    location: Location
    place: int = 0


@dataclass(frozen=True, slots=True)
class DeclaredDialogue:
    """A dialogue that is read from rows.

    Args:
        id: name of the dialogue.
        turns: turns in reading order. Empty if no turn has text.
        context: all turns as one text, as in the package's datasets.
        values: the row, or the first row if a row is an utterance.
        by_turn: whether a row is an utterance.
        turns_field: ``dialogue.turns``. Empty if a row is an utterance.
        location: location for messages.
        size: number of turns in the file, including those without text.
        empty: values and locations of the turns without text, which are skipped.
    """

    id: str
    turns: tuple[Turn, ...]
    context: str
    values: Mapping[str, Any]
    by_turn: bool
    turns_field: str
    location: Location
    size: int = 0
    empty: tuple[tuple[Any, Location], ...] = ()

    @property
    def words(self) -> str:
        """Texts of all turns without speakers."""
        return " ".join(turn.text for turn in self.turns)

    @property
    def turn_by_place(self) -> dict[int, Turn]:
        """Last turn of each object, by the object's place in the file."""
        return {turn.place: turn for turn in self.turns}


def read_dialogues(
    rows: Iterable[SourceRow],
    section: DialogueSection,
    name: str,
    split: str = "",
    report: Report | None = None,
) -> Iterator[DeclaredDialogue]:
    """Yield the dialogues of a file in order.

    Args:
        rows: rows of the file.
        section: fields that contain the dialogues.
        name: name of the file. It is the prefix of dialogue names if the file has none, or if they
            restart in each file.
        split: split of the file. It is the prefix of dialogue names that restart in each split.
        report: function that records the problem of each dialogue that cannot be read. None to
            raise the first problem.

    Raises:
        DataError: a row does not match the section. The message names file, line and field.
    """
    if section.id is not None:
        per = section.id.per if isinstance(section.id, DialogueName) else None
        name = {"file": f"{name}-", "split": f"{split}-", None: ""}[per]
    if section.rows is not None:
        rows = _read_inner_rows(rows, section.rows, report)
    groups = _group_rows(rows, section, report) if section.by_turn else ([row] for row in rows)
    for group in groups:
        try:
            turns = _list_turns(group, section)
            dialogue = _build_dialogue(group[0], turns, section, name)
        except DataError as error:
            _report_or_raise(error, report)
        else:
            yield dialogue


def _report_or_raise(error: DataError, report: Report | None) -> None:
    if report is None:
        raise error
    report(error)


def _list_turns(group: Sequence[SourceRow], section: DialogueSection) -> list[tuple[Any, Location]]:
    """Return the turns of a dialogue, which are items of lists in its row, or rows themselves."""
    if section.turns is None:
        return [(row.values, row.location) for row in group]
    (row,) = group
    turns = [
        turn
        for lists, location in find_lists(row.values, section.turns, row.location)
        for turn in _read_turns(lists, section, location)
    ]
    if not turns and section.skip != "empty":
        at = row.location.at(section.turns)
        raise EmptyTurnError(at, "the dialogue has no turns", "remove the dialogue, add its turns")
    return turns


def _read_inner_rows(
    rows: Iterable[SourceRow], path: str, report: Report | None
) -> Iterator[SourceRow]:
    """Yield the items of a list in each row, combined with the row's other fields."""
    for row in rows:
        try:
            yield from _list_inner_rows(row, path)
        except DataError as error:
            _report_or_raise(error, report)


def _list_inner_rows(row: SourceRow, path: str) -> list[SourceRow]:
    key = path.partition(".")[0].removesuffix(LIST_MARK)
    outer = {name: value for name, value in row.values.items() if name != key}
    inner_rows: list[SourceRow] = []
    for lists, location in find_lists(row.values, path.removesuffix(LIST_MARK), row.location):
        items = cells.list_items(lists)
        if items is None:
            raise location.error(
                describe_wrong_value(lists, "a list of rows"),
                "write the object with the dialogues to a file of its own",
            )
        for item in items:
            inner = row.location.locate_item(len(inner_rows) + 1)
            if not isinstance(item, Mapping):
                raise inner.at(path).error(describe_wrong_value(item, "an object in braces"))
            inner_rows.append(SourceRow(row.number, {**outer, **item}, inner))
    return inner_rows


def _group_rows(
    rows: Iterable[SourceRow], section: DialogueSection, report: Report | None
) -> Iterator[Sequence[SourceRow]]:
    """Yield groups of consecutive rows that have the same dialogue name."""
    seen: set[int] = set()
    group: list[SourceRow] = []
    current, is_apart = "", False
    for row in rows:
        try:
            name = _read_name(row, section)
        except DataError as error:
            _report_or_raise(error, report)
            continue
        if name != current:
            if group:
                yield group
            group, current = [], name
            is_apart = hash(name) in seen  # A hash takes eight bytes, for millions of dialogues.
            seen.add(hash(name))
            if is_apart:
                problem = row.location.error(
                    f"the rows of dialogue {name!r} are not consecutive",
                    "sort the file by dialogue, or give each dialogue its own name",
                )
                _report_or_raise(problem, report)
        if not is_apart:
            group.append(row)
    if group:
        yield group


def _read_name(row: SourceRow, section: DialogueSection) -> str:
    assert section.id_field is not None
    value = get_value(row.values, section.id_field, row.location)
    if isinstance(value, float) and math.isfinite(value):  # Tables turn the name 0 into 0.0.
        value = int(value) if value.is_integer() else repr(value)
    if isinstance(value, bool) or not isinstance(value, str | int) or str(value).strip() == "":
        raise row.location.at(section.id_field).error(
            describe_wrong_value(value, "the name of the dialogue")
        )
    return str(value)


def _build_dialogue(
    row: SourceRow, turns: Sequence[tuple[Any, Location]], section: DialogueSection, name: str
) -> DeclaredDialogue:
    number = row.location.number
    named = f"{name}-{number}" if section.id is None else f"{name}{_read_name(row, section)}"
    spoken_turns: list[Turn] = []
    empty: list[tuple[Any, Location]] = []
    offset = 0
    for place, (values, location) in _sort_turns(list(enumerate(turns)), section.order):
        count = len(spoken_turns)
        for speaker, text in _read_spoken_texts(values, section, location):
            line = f"{speaker}: {text}" if speaker else text
            spoken_turns.append(
                Turn(speaker, text, offset, offset + len(line), values, location, place)
            )
            offset += len(line) + 1
        if count == len(spoken_turns):
            empty.append((values, location))
    context = " ".join(f"{t.speaker}: {t.text}" if t.speaker else t.text for t in spoken_turns)
    return DeclaredDialogue(
        *(named, tuple(spoken_turns), context, row.values, section.by_turn, section.turns or ""),
        *(row.location, len(turns), tuple(empty)),
    )


PlacedTurns = list[tuple[int, tuple[Any, Location]]]


def _sort_turns(turns: PlacedTurns, order: str | None) -> PlacedTurns:
    """Return turns sorted by a field, in stable order."""
    if order is None:
        return turns
    values = [get_value(values, order, location) for _, (values, location) in turns]
    for value, (_, (_, location)) in zip(values, turns, strict=True):
        if value is None or value == "":
            raise location.at(order).error(
                "the value is missing, but dialogue.order sorts turns by it",
                "add the value, or remove dialogue.order",
            )
    keys = build_sort_keys(values)
    if keys is None:
        location = turns[0][1][1]
        raise location.at(order).error(
            f"the values {', '.join(map(format_value, values[:3]))} cannot be sorted",
            "use numbers, ISO dates of one format or names that differ only in their numbers, or "
            "remove dialogue.order",
        )
    return [turns[index] for index in sorted(range(len(turns)), key=keys.__getitem__)]


def _read_turns(
    found: Any, section: DialogueSection, location: Location
) -> list[tuple[Any, Location]]:
    """Read the turns in a list of objects or texts, in an object of lists, or in a transcript."""
    if found is None and section.skip == "empty":
        return []
    if found is None:
        raise EmptyTurnError(
            location, "the list of turns is missing", "remove the dialogue, add its turns"
        )
    if isinstance(found, str):
        found = _read_transcript(found, section, location)
    items = cells.list_items(found)
    if items is None and isinstance(found, Mapping):
        raise location.error(
            "the value must be a list of turns, but it is an object whose lists are missing or "
            "have different lengths"
        )
    if items is None:
        raise location.error(describe_wrong_value(found, "a list of turns"))
    return [(values, location.at(number)) for number, values in enumerate(items)]


def _read_transcript(text: str, section: DialogueSection, location: Location) -> Any:
    """Read the list or object in a cell, or split its text into one turn per line."""
    if cells.is_like_structure(text):
        try:
            return cells.parse_structure(text)
        except ValueError as error:
            raise location.error(
                f"the text begins like a list, but is not valid JSON ({error})",
                "write lists as JSON",
            ) from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not section.texts:
        return lines
    turns = []
    for line in lines:
        match = TRANSCRIPT_LINE.fullmatch(line) if section.speaker else None
        turn = {section.texts[0]: match[2] if match else line}
        turns.append({**turn, str(section.speaker): match[1]} if match else turn)
    return turns


def _read_spoken_texts(
    values: Any, section: DialogueSection, location: Location
) -> Iterator[tuple[str, str]]:
    """Yield (speaker, text) of each turn in an object, stripped of white space."""
    speaker = _read_speaker(values, section.speaker, location)
    for field in section.texts or ("",):
        text = get_joined_text(values, field, location) if field else values
        at = location.at(field) if field else location
        is_empty = text is None or (isinstance(text, str) and not text.strip())
        if is_empty and section.skip == "empty":
            continue
        if is_empty:
            problem = "the text is empty" if isinstance(text, str) else "the text is missing"
            raise EmptyTurnError(at, problem, "remove the turn, add its text")
        if not isinstance(text, str):
            raise at.error(describe_wrong_value(text, "a string"), _suggest_text_field(text))
        named = speaker if section.speaker or len(section.texts) < 2 else get_last_key(field)
        yield named, text.strip()


def _suggest_text_field(text: Any) -> str:
    """Suggest the text field of a value that is not a text, or return "" without a suggestion."""
    if isinstance(text, list | tuple):
        return "set dialogue.text to the path of the parts, as in field[].key"
    return (
        "set dialogue.text to the path of a key of the object, as in field.key"
        if isinstance(text, Mapping)
        else ""
    )


def _read_speaker(values: Any, field: str | None, location: Location) -> str:
    speaker = get_value(values, field, location) if field else None
    if isinstance(speaker, list | tuple) and all(isinstance(name, str) for name in speaker):
        speaker = ", ".join(speaker)
    if isinstance(speaker, float) and speaker.is_integer():
        speaker = int(speaker)
    if speaker is not None and not isinstance(speaker, str | int):
        raise location.at(str(field)).error(describe_wrong_value(speaker, "the name of a speaker"))
    return "" if speaker is None else str(speaker).strip()


def format_row_name(location: Location) -> str:
    """Format a location as part of an instance's name, such as ``train.jsonl:12``."""
    return f"{Path(location.file).name}:{location.number}"
