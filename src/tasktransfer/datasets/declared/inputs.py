"""Inputs of a model from files of dialogues without answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tasktransfer.core.messages import format_quantity
from tasktransfer.datasets.declared.dialogues import (
    DeclaredDialogue,
    EmptyTurnError,
    Turn,
    read_dialogues,
)
from tasktransfer.datasets.declared.files import DataFile, check_file
from tasktransfer.datasets.declared.row_fields import LIST_MARK, get_value
from tasktransfer.datasets.declared.rows import read_rows
from tasktransfer.datasets.declared.section import DialogueSection
from tasktransfer.datasets.declared.source_row import SourceRow
from tasktransfer.datasets.declared.task_section import TaskSection
from tasktransfer.errors import DataError

MAX_TRIED_ROWS, MAX_GUESS_ROWS = 20, 500
"""Maximum numbers of rows on which the fields of the training files are tried, and from which the
fields of another file are guessed."""

SKIP_EMPTY = "remove the turn, give its text, or add --skip-empty to skip it"

Scope = Literal["dialogue", "turn", "last_turn"]


class Input(NamedTuple):
    """An input of a model.

    Attributes:
        dialogue: name of the dialogue.
        turn: position of the turn in the dialogue, from 0. None if the input is a whole dialogue.
        context: text up to the end of the turn, or of the dialogue.
        focus: offset of the turn in the context, or the context's length for a dialogue.
        query: texts of the fields of the model's query.
    """

    dialogue: str
    turn: int | None
    context: str
    focus: int
    query: dict[str, str]


def get_scope(section: TaskSection, dialogue: DialogueSection) -> Scope:
    """Return the part of a dialogue to which a task's labels belong (``answers.TaskReader``)."""
    if section.kind != "utterance_classification":
        return "dialogue"
    is_listed = LIST_MARK in (section.label or "")
    return "turn" if is_listed or dialogue.by_turn else "last_turn"


def read_inputs(
    path: Path,
    scope: Scope,
    stored: Mapping[str, Any] | None,
    fields: Mapping[str, str],
    notes: list[str],
    *,
    skip_empty: bool = False,
) -> Iterator[Input]:
    """Yield the inputs of a file, in its order. The memory use does not depend on its size.

    Args:
        stored: section ``dialogue`` of the training files. The fields are guessed if it is None, or
            if the file does not have its fields.
        fields: field of the query → path of its text.
        notes: list to which notes on the file are added.
        skip_empty: whether turns without text are skipped instead of being errors.

    Raises:
        DataError: the file, a row or a dialogue cannot be read. The message names file and line.
    """
    file = check_file(path, "the command line")
    section = _select_section(file, stored, notes)
    if skip_empty:
        section = section.model_copy(update={"skip": "empty"})
    empty, skipped, first = 0, 0, ""
    for dialogue in _read_with_remedy(file, section, notes):
        skipped += len(dialogue.empty)
        if not dialogue.turns:
            empty, first = empty + 1, first or dialogue.location.place
            continue
        yield from _build_inputs(dialogue, scope, fields)
    if skipped:
        turns = format_quantity(skipped, "turn")
        notes.append(f"{path}: {turns} without text {'is' if skipped == 1 else 'are'} skipped")
    if empty:
        problem = "The dialogue has no text, and gets no prediction"
        if empty > 1:
            others = f"{empty:,} dialogues, of which this is the first,"
            problem = f"{others} have no text, and get no prediction"
        notes.append(f"{first}: {problem}")


def _read_with_remedy(
    file: DataFile, section: DialogueSection, notes: list[str]
) -> Iterator[DeclaredDialogue]:
    """Yield the dialogues of a file. Errors about empty turns mention an option of ``predict``."""
    try:
        yield from read_dialogues(read_rows(file, notes), section, file.path.name.partition(".")[0])
    except EmptyTurnError as error:
        raise error.location.error(error.problem, SKIP_EMPTY) from None


def _select_section(
    file: DataFile, stored: Mapping[str, Any] | None, notes: list[str]
) -> DialogueSection:
    """Return the stored section if it fits one of the file's first rows, or else a guess.

    The stored section is also used for a file without the field of names.
    """
    first = list(islice(read_rows(file, problems=[]), MAX_TRIED_ROWS))
    if not first:
        next(read_rows(file))  # This raises the first problem.
    section = None
    if stored is not None:
        section = DialogueSection.model_validate(stored)
        if section.turns is not None and not _can_read(section, first):
            section = section.model_copy(
                update={"id": None}
            )  # Dialogues are named after their rows.
        if _can_read(section, first):
            return section
    from tasktransfer.datasets.guess.cell_texts import parse_cells  # noqa: PLC0415  # rare
    from tasktransfer.datasets.guess.fit import fit_dialogue  # noqa: PLC0415

    rows, _ = parse_cells(list(islice(read_rows(file, problems=[]), MAX_GUESS_ROWS)))
    try:
        fit = fit_dialogue(rows, str(file.path))
    except DataError:
        if section is None:
            raise
        return section  # Its error names the line.
    if section is not None and (section.turns, section.text) == (fit.model.turns, fit.model.text):
        return section
    listed = ", ".join(f"{key}: {value}" for key, value in fit.section.items())
    notes.append(f"{file.path}: The fields of the file are guessed: {listed}")
    return fit.model


def _can_read(section: DialogueSection, rows: Sequence[SourceRow]) -> bool:
    """Return whether at least one of the rows can be read with a section."""
    for row in rows:
        with suppress(DataError):
            if any(dialogue.turns for dialogue in read_dialogues([row], section, "")):
                return True
    return False


def _build_inputs(
    dialogue: DeclaredDialogue, scope: Scope, fields: Mapping[str, str]
) -> Iterator[Input]:
    turns: tuple[Turn | None, ...] = (None,)
    if scope == "turn":
        turns = tuple(dialogue.turn_by_place.values())
    elif scope == "last_turn":
        turns = (dialogue.turns[-1],)
    for turn in turns:
        query = {name: _read_field(dialogue, turn, path) for name, path in fields.items()}
        end = len(dialogue.context) if turn is None else turn.end
        focus = end if turn is None else turn.start
        place = None if turn is None else turn.place
        yield Input(dialogue.id, place, dialogue.context[:end], focus, query)


def _read_field(dialogue: DeclaredDialogue, turn: Turn | None, path: str) -> str:
    """Return the text of a query field in the turn or in the dialogue's row."""
    owner = turn if LIST_MARK in path or dialogue.by_turn else None
    values, location = (
        (dialogue.values, dialogue.location) if owner is None else (owner.values, owner.location)
    )
    value = get_value(values, path.rpartition(LIST_MARK)[2].lstrip("."), location)
    if not isinstance(value, str) or not value.strip():
        raise location.at(path).error(
            "the value is missing or not a text, but the model reads this field", "add a text"
        )
    return value.strip()


def check_not_empty(inputs: Iterator[Input], path: Path) -> Iterator[Input]:
    """Yield all inputs. Raises DataError if there are none."""
    first = next(inputs, None)
    if first is None:
        raise DataError(
            f"{path}: The file contains no dialogue with text. Use a file with dialogues."
        )
    yield first
    yield from inputs
