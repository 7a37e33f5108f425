"""Inputs of a model from files of dialogues without answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tasktransfer.datasets.declared.dialogues import (
    DeclaredDialogue,
    EmptyTurnError,
    Turn,
    read_dialogues,
)
from tasktransfer.datasets.declared.files import DataFile, check_file
from tasktransfer.datasets.declared.row_fields import LIST_MARK, SourceRow, get_value
from tasktransfer.datasets.declared.rows import MAX_BROKEN_LINES, read_rows
from tasktransfer.datasets.declared.section import DialogueSection
from tasktransfer.datasets.declared.task_section import TaskSection
from tasktransfer.errors import DataError, format_location, format_quantity, suggest_name
from tasktransfer.files.csv_file import open_csv

MAX_TRIED_ROWS, MAX_GUESS_ROWS = 20, 500
"""Maximum numbers of rows on which the fields of the training files are tried, and from which the
fields of another file are guessed."""

MAX_PROBLEMS = 20
"""Maximum number of lines and dialogues that are reported because they cannot be read."""

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
    """Return the part of a dialogue that a task labels (``answers.TaskReader``)."""
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
    skip_broken: bool = False,
) -> Iterator[Input]:
    """Yield the inputs of a file in order, with memory use independent of its size.

    After the first problem, no inputs are yielded, but the file is read up to the last problem that
    is reported.

    Args:
        stored: section ``dialogue`` of the training files. The fields are guessed if it is None, or
            if the file does not have its fields.
        fields: field of the query → path of its text.
        notes: list to which notes on the file are added.
        skip_empty: whether turns without text, and dialogues without such turns, are skipped
            instead of being errors.
        skip_broken: whether lines and dialogues that cannot be read are skipped, up to
            ``MAX_BROKEN_LINES``, instead of being errors.

    Raises:
        DataError: the file, rows or dialogues cannot be read. The message names file and line of
            up to ``MAX_PROBLEMS`` problems.
    """
    file = check_file(path, "the command line")
    section = _select_section(file, stored, notes)
    if skip_empty:
        section = section.model_copy(update={"skip": "empty"})
    problems = list[str]()
    most = MAX_BROKEN_LINES if skip_broken else MAX_PROBLEMS
    rows = takewhile(lambda _: len(problems) <= most, _read_rows(file, notes, problems))
    count, empty, skipped, first = 0, 0, 0, ""
    name = file.path.name.partition(".")[0]
    for dialogue in read_dialogues(
        rows, section, name, report=lambda error: problems.append(_suggest_option(error))
    ):
        skipped += len(dialogue.empty)
        if not dialogue.turns:
            empty, first = empty + 1, first or dialogue.location.place
            continue
        try:
            inputs = list(_build_inputs(dialogue, scope, fields))
        except DataError as error:
            problems.append(str(error))
            continue
        count += 1
        if skip_broken or not problems:
            yield from inputs
    if problems and (not skip_broken or not count or len(problems) > most):
        raise DataError("\n".join(_list_problem_lines(path, problems, most, can_skip=count > 0)))
    notes += _describe_skipped_problems(path, problems)
    if skipped:
        turns = format_quantity(skipped, "turn")
        notes.append(f"{path}: {turns} without text {'is' if skipped == 1 else 'are'} skipped")
    if empty:
        problem = "The dialogue has no text, and gets no prediction"
        if empty > 1:
            others = f"{empty:,} dialogues, of which this is the first,"
            problem = f"{others} have no text, and get no prediction"
        notes.append(f"{first}: {problem}")


def _read_rows(file: DataFile, notes: list[str], problems: list[str]) -> Iterator[SourceRow]:
    """Yield the rows of a file, and collect the problems of broken lines.

    Raises:
        DataError: the rest of the file cannot be read. The message lists the earlier problems, too.
    """
    try:
        yield from read_rows(file, notes, problems)
    except DataError as error:
        raise DataError("\n".join([*problems[:MAX_PROBLEMS], str(error)])) from None


def _suggest_option(error: DataError) -> str:
    """Suggest an option of ``predict`` in the message about an empty turn."""
    return str(error.suggest("add --skip-empty") if isinstance(error, EmptyTurnError) else error)


def _list_problem_lines(
    path: Path, problems: Sequence[str], most: int, *, can_skip: bool
) -> Iterator[str]:
    """Yield the lines of an error message: the first problems, and advice."""
    yield from problems[:MAX_PROBLEMS]
    if len(problems) > most:
        yield (
            f"{path}: The rest of the file is not read, because the file has more than {most:,} "
            "problems. Check that its format is that of the training files."
        )
    if can_skip:
        yield "To skip lines and dialogues that cannot be read, add the option --skip-broken."


def _describe_skipped_problems(path: Path, problems: Sequence[str]) -> Iterator[str]:
    """Yield notes on skipped lines and dialogues."""
    if problems:
        count = format_quantity(len(problems), "problem")
        yield f"{path}: {count}, whose lines or dialogues get no prediction"
    yield from problems[:MAX_PROBLEMS]
    if len(problems) > MAX_PROBLEMS:
        yield f"and {format_quantity(len(problems) - MAX_PROBLEMS, 'more problem')}"


def _select_section(
    file: DataFile, stored: Mapping[str, Any] | None, notes: list[str]
) -> DialogueSection:
    """Select the stored section if it fits the file's first rows, otherwise guess a section.

    The stored section is also used for a file without the field of names.
    """
    first = list(islice(read_rows(file, problems=[]), MAX_TRIED_ROWS))
    if not first:
        next(read_rows(file))  # This raises the first problem.
    section = None
    if stored is not None:
        section = DialogueSection.model_validate(stored)
        if section.turns is not None and not _can_read(section, first):
            absent, name = section.id_field, _guess_id(file)
            section = section.model_copy(update={"id": name})
            if name is not None and _can_read(section, first):
                notes.append(
                    f"{file.path}: The field {absent} is missing, so the field {name} names the "
                    "dialogues"
                )
        if _can_read(section, first):
            return section
    from tasktransfer.datasets.guess.columns import parse_cells  # noqa: PLC0415  # rare
    from tasktransfer.datasets.guess.fit import fit_dialogue  # noqa: PLC0415

    rows, _ = parse_cells(list(islice(read_rows(file, problems=[]), MAX_GUESS_ROWS)))
    try:
        fit = fit_dialogue(rows, str(file.path))
    except DataError:
        if section is None:
            raise
        if missing := _describe_missing_fields(file, section, first):
            raise DataError(missing) from None
        return section  # Its error names the line.
    if section is not None and (section.turns, section.text) == (fit.model.turns, fit.model.text):
        return section
    model, guessed = fit.model, dict(fit.section)
    if model.id is None and (name := _guess_id(file)) is not None:
        model, guessed["id"] = model.model_copy(update={"id": name}), name
    listed = ", ".join(f"{key}: {value}" for key, value in guessed.items())
    reason = ""
    if section is not None:
        needed = ", ".join(_list_first_keys(section))
        reason = f", because it cannot be read with those of the training files ({needed})"
    notes.append(f"{file.path}: The fields of the file are guessed{reason}: {listed}")
    return model


def _guess_id(file: DataFile) -> str | None:
    """Guess the field with the names of the dialogues of a file that has one dialogue per row.

    Returns:
        None if no field has a typical name and, in each of the first rows, another value without
        white space. Dialogues are then named after their rows.
    """
    from tasktransfer.datasets.guess.columns import collect_columns  # noqa: PLC0415  # rare
    from tasktransfer.datasets.guess.names import ID_NAMES  # noqa: PLC0415

    rows = [row.values for row in islice(read_rows(file, problems=[]), MAX_GUESS_ROWS)]
    for name, values in collect_columns(rows).items():
        named = [v for v in values if isinstance(v, str | int) and len(str(v).split()) == 1]
        if name.lower() in ID_NAMES and len(rows) == len(named) == len({*map(str, named)}):
            return name
    return None


def _list_first_keys(section: DialogueSection) -> list[str]:
    """Return the fields without which no dialogue can be read from a row."""
    lists = section.rows or section.turns
    texts = section.texts if lists is None else ()
    names = [section.id_field] if section.by_turn else []
    paths = [path.partition(LIST_MARK)[0] for path in (lists, *texts, *names) if path]
    return list(dict.fromkeys(path for path in paths if path))


def _describe_missing_fields(
    file: DataFile, section: DialogueSection, rows: Sequence[SourceRow]
) -> str:
    """Describe the fields that are missing from all rows, or return "" if there are none."""
    keys = list(dict.fromkeys(key for row in rows for key in row.values))
    missing = [
        path
        for path in _list_first_keys(section)
        if path not in keys and path.partition(".")[0] not in keys
    ]
    if not missing:
        return ""
    place, kind = rows[0].location.place, "fields" if file.format != "csv" else "columns"
    if file.format == "csv":
        place = format_location(file.path, open_csv(file.path).header_line)
    are = (
        f"{kind[:-1]} {missing[0]} is" if len(missing) == 1 else f"{kind} {', '.join(missing)} are"
    )
    return (
        f"{place}: The {are} missing, but the training files have the dialogue there. The file has "
        f"the {kind} {', '.join(keys)[:300]}.{suggest_name(missing[0], keys)} Rename the {kind} as "
        "in the training files, or choose another file."
    )


def _can_read(section: DialogueSection, rows: Sequence[SourceRow]) -> bool:
    """Return whether any of the rows can be read with a section."""
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
    """Read the text of a query field from a turn or from the dialogue's row."""
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
    """Yield all inputs, and raise DataError if there are none."""
    first = next(inputs, None)
    if first is None:
        raise DataError(
            f"{path}: The file contains no dialogue with text. Use a file with dialogues."
        )
    yield first
    yield from inputs
