"""Conversion of annotations to instances: shared code of the release's layouts.

A layout is a function from a dialogue and a task's card to the task's instances about the dialogue.
The layouts of a dataset are in its folder. Tasks with the same annotation format share a layout.
Field names are those of the release, and ``query`` names are those in cards and prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, TypeVar

from tasktransfer.datasets.dataset import TaskSize, TinySize
from tasktransfer.errors import describe_wrong_value
from tasktransfer.files.data_files import AGAIN, parse_json
from tasktransfer.files.fields import (
    Location,
    Table,
    as_table,
    find_nearest,
    get_list,
    get_member,
    get_name,
    get_table,
    get_text,
    get_texts,
    iterate_objects,
)
from tasktransfer.tasks.card import Instance, Task


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
    """Format an utterance as ``speaker: utterance``, or alone without speakers."""
    names = " ".join(speakers)
    return f"{names}: {utterance}" if names else utterance


def find_turn(dialogue: AnnotatedDialogue, turn_id: object, location: Location) -> Turn:
    """Return the turn with an ID. Raises DataError if there is none."""
    if isinstance(turn_id, (str, int)) and not isinstance(turn_id, bool):
        position = dialogue.positions.get(turn_id)
        if position is not None:
            return dialogue.turns[position]
    first, last = dialogue.turns[0].id, dialogue.turns[-1].id
    raise location.error(
        f"the turn {turn_id!r} does not exist, because the dialogue has the turns {first!r} to "
        f"{last!r}"
    )


def join_turns(
    dialogue: AnnotatedDialogue, table: Table, key: str, location: Location
) -> tuple[str, tuple[int, ...]]:
    """Join the turns whose IDs are at ``key``, and return the offset of each turn.

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
    """Parse a JSON file that contains an object. Raises DataError with line and column."""
    return as_table(parse_json(content, file), Location(file, remedy=AGAIN))


def parse_dialogues(release: Table, file: str) -> dict[str, AnnotatedDialogue]:
    """Map IDs to the dialogues of a release, in the order of the file.

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
        raise location.at("turn_id").error(
            f"the value {turn_id!r} is neither a text nor an integer"
        )
    speakers = get_texts(row, "speakers", location)
    utterance = get_text(row, "utterance", location)
    if not all(speakers):
        raise location.at("speakers").error("the list contains an empty name", "remove the name")
    body = offset + (len(" ".join(speakers)) + 2 if speakers else 0)
    return Turn(turn_id, speakers, utterance, offset, body, body + len(utterance), row, location)


Layout = Callable[[AnnotatedDialogue, Task], Iterator[Instance]]
Answer = TypeVar("Answer", str, tuple[str, int])


class AnnotatedTask(NamedTuple):
    """A task with its annotation format in the release.

    Args:
        card: card of the task.
        layout: function that reads its instances.
        size: instances of the few-sample setting (paper, Table 1). Its tokens are the mean of 150
            training instances of the release in BERT's word pieces, truncated at 512.
        tiny: size in generated data. None if the generated data does not have the task.
    """

    card: Task
    layout: Layout
    size: TaskSize
    tiny: TinySize | None = None


def read_utterance_labels(dialogue: AnnotatedDialogue, task: Task) -> Iterator[Instance]:
    """Yield one instance per labelled turn (emotion or dialogue act).

    The context ends with the turn.
    """
    for turn in dialogue.turns:
        if task.name not in turn.raw:
            continue
        item = get_table(turn.raw, task.name, turn.location)
        location = add_instance_name(item, turn.location.at(task.name))
        target = (get_label(item, "label", task, location),)
        context = dialogue.context[: turn.end]
        yield build_instance(dialogue, task, location, context, target=target, focus=turn.start)


def build_instance(
    dialogue: AnnotatedDialogue,
    task: Task,
    location: Location,
    context: str,
    *,
    target: tuple[str, ...],
    focus: int | None = None,
    query: dict[str, str] | None = None,
    options: tuple[str, ...] = (),
    starts: tuple[int, ...] = (),
    turns: tuple[int, ...] | None = None,
) -> Instance:
    """Return an instance about a dialogue.

    Args:
        dialogue: the dialogue.
        task: card of the task.
        location: location of the annotation, with the name of the instance.
        context: text that a model reads.
        target: gold answers.
        focus: offset of the part that truncation keeps. None for the end of the context.
        query: fields of the card's templates.
        options: texts of the options.
        starts: offsets of gold spans.
        turns: offsets of turns in the context. None if the context is the dialogue's beginning, or
            a text of the annotation without known turns.
    """
    if turns is None:
        whole = dialogue.context.startswith(context)
        turns = tuple(t.start for t in dialogue.turns if whole and t.start < len(context))
    return Instance(
        id=location.instance,
        dialogue_id=dialogue.id,
        task=task.name,
        context=context,
        focus=len(context) if focus is None else focus,
        query=query or {},
        options=options,
        target=target,
        starts=starts,
        turns=turns,
    )


def build_span_instance(
    dialogue: AnnotatedDialogue,
    task: Task,
    location: Location,
    context: str,
    *,
    answers: Iterable[tuple[str, int]],
    query: dict[str, str],
) -> Instance:
    """Return an instance of a span task, whose answers are pairs of text and offset."""
    kept = remove_duplicates(answers)
    if not kept:
        raise location.at("answers").error("the list of answers is empty")
    target, starts = zip(*kept, strict=True)
    return build_instance(
        dialogue, task, location, context, target=target, starts=starts, query=query
    )


def read_items(table: Table, key: str, location: Location) -> Iterator[tuple[Table, Location]]:
    """Yield the annotated items in the list at ``key``, with their locations."""
    for item, spot in iterate_objects(table, key, location):
        yield item, add_instance_name(item, spot)


def add_instance_name(item: Table, location: Location) -> Location:
    """Return a location that also names the item's instance_id."""
    return location.locate_instance(get_name(item, "instance_id", location))


def get_query_texts(item: Table, keys: tuple[str, ...], location: Location) -> dict[str, str]:
    """Return the texts of a query, by key."""
    return {key: get_text(item, key, location) for key in keys}


def get_label(item: Table, key: str, task: Task, location: Location) -> str:
    """Return the text at ``key``. Raises DataError if it is not a label of the task."""
    label = get_text(item, key, location)
    check_label(label, task, location.at(key))
    return label


def check_label(label: str, task: Task, location: Location) -> None:
    """Raise DataError if a text is not a label of the task."""
    if label not in task.labels:
        raise location.error(
            f"the answer {label!r} is not a label of the task {task.name} (the most similar label "
            f"is {find_nearest(label, task.labels)})"
        )


def get_choice(
    item: Table, task: Task, location: Location
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the options, and the gold option's number as text.

    The number is a text or an integer in the release.
    """
    options = get_texts(item, "options", location)
    if len(options) != task.classes:
        raise location.at("options").error(
            f"the question has {len(options)} options, but every question of the task {task.name} "
            f"has {task.classes}"
        )
    number = get_member(item, "label", location)
    numbers = [str(index) for index in range(len(options))]
    if isinstance(number, (str, int)) and not isinstance(number, bool) and str(number) in numbers:
        return options, (str(number),)
    raise location.at("label").error(
        describe_wrong_value(number, f"the number of an option, from 0 to {len(options) - 1}")
    )


def check_span_offset(text: str, start: int, whole: str, where: str, location: Location) -> None:
    """Raise DataError if ``whole`` does not contain the text at ``start``."""
    if start < 0 or not whole.startswith(text, start):
        found = whole[max(start, 0) : max(start, 0) + len(text)]
        raise location.error(
            f"{where} contains {found!r} at the offset {start}, but the annotated text is {text!r}"
        )


def remove_duplicates(values: Iterable[Answer]) -> tuple[Answer, ...]:
    """Return the distinct values in their original order."""
    return tuple(dict.fromkeys(values))
