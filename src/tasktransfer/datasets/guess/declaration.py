"""Guess of a declaration from the rows of a file.

Each candidate is tried on the rows with the code that reads them for a study. If it fails, the next
candidate is tried.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tasktransfer.datasets.declared.answers import TaskReader
from tasktransfer.datasets.declared.dialogues import DeclaredDialogue
from tasktransfer.datasets.declared.preview import format_dialogue
from tasktransfer.datasets.declared.row_fields import LIST_MARK, SourceRow
from tasktransfer.datasets.declared.section import DialogueSection
from tasktransfer.datasets.declared.task_section import TaskSection
from tasktransfer.datasets.guess.columns import (
    MIN_FRACTION,
    MIN_TEXT_WORDS,
    Columns,
    collect_columns,
    compute_mean_words,
    expand_lists,
    expand_object_lists,
    find_unnameable_fields,
    format_label,
    is_mostly_true,
    is_null,
    list_type_names,
    parse_cells,
)
from tasktransfer.datasets.guess.dialogues import Rows, Section
from tasktransfer.datasets.guess.fit import DialogueFit, fit_dialogue
from tasktransfer.datasets.guess.names import describe_split_fields, find_grouping_field
from tasktransfer.datasets.guess.tasks import (
    TaskGuess,
    join_columns,
    propose_parallel_list_tasks,
    propose_row_tasks,
    propose_turn_tasks,
)
from tasktransfer.datasets.guess.turn_fields import find_restarting_counter
from tasktransfer.errors import DataError

MAX_TASKS = 30
TURN_MARKS = ("__eou__", "__eot__", "<eos>", "</s>", "[SEP]", "[EOU]", "<sep>", "|||")
"""Marks that separate the turns of a dialogue in one text."""
MAX_VALUES = 100_000
"""Maximum number of fields and items of rows that are inspected."""
MAX_TURNS = 20_000
"""Maximum number of turns on which tasks are tried."""
MIN_ANSWERS = 10
"""Minimum number of answers of a task whose answer is missing in many dialogues."""


@dataclass(frozen=True)
class Guess:
    """A declaration guessed from rows.

    Args:
        dialogue: section ``dialogue`` of the declaration.
        tasks: section ``tasks`` of the declaration.
        counts: task → answer → number of occurrences.
        numbers: task → types of its labels in the file, such as "numbers and texts", for tasks with
            numbers among them.
        unused: fields of rows and turns that the declaration does not name.
        texts: fields in ``unused`` that contain texts.
        notes: notes about the guess for the user.
        example: lines that show a dialogue as it is read, if possible one with several turns.
    """

    dialogue: Section
    tasks: dict[str, Section] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    example: tuple[str, ...] = ()


def guess_declaration(rows: Sequence[SourceRow], location: str) -> Guess:
    """Guess the declaration that fits rows best.

    Raises:
        DataError: no field looks like the text of turns. The message lists the fields.
    """
    read, decoded = parse_cells(_limit_rows(rows))
    notes = list(decoded.notes)
    fit = fit_dialogue(read, location)
    notes += fit.notes
    plain = [row.values for row in read]
    if unnamed := find_unnameable_fields(plain):
        listed = ", ".join(unnamed)
        notes.append(
            f"A declaration cannot name the fields {listed:.200}. Rename them to use them."
        )
    if (inner := fit.model.rows) is not None:
        plain = [dict(dialogue.values) for dialogue in fit.dialogues]
        notes.append(f"A row contains several dialogues, the items of {inner}.")
    columns = collect_columns(plain)
    groups = [collect_columns(objects) for objects in fit.iterate_turn_objects()]
    turn_columns: Columns = {}
    if fit.model.turns is not None:
        turn_lists = columns.pop(_get_first_key(fit.model.turns), [])
        notes += _describe_mixed_turns(fit.model.turns, turn_lists)
        turn_columns = join_columns(groups)
    elif fit.model.id is None and (counter := find_restarting_counter(columns)):
        notes.append(
            f"{counter} counts up and restarts, so rows may be turns of dialogues. Add a field "
            "that names the dialogue of each row, and set dialogue.id to it."
        )
    elif fit.model.id is None and (grouping := find_grouping_field(columns, len(plain))):
        key, distinct = grouping
        notes.append(
            f"Rows with the same {key} are consecutive ({distinct:,} values in {len(plain):,} "
            f"rows), so they may be the turns of a dialogue. If they are, set dialogue.id to {key}."
        )
    if fit.model.turns is None and fit.model.id is None:
        notes += _describe_turn_marks(fit)
    notes += describe_split_fields(columns, Path(location))
    columns = expand_lists(expand_object_lists(columns, len(plain)), len(plain))
    proposed = _propose_tasks(fit.model, plain, columns, groups, decoded.keys)
    tasks: dict[str, Section] = {}
    counts: dict[str, Counter[str]] = {}
    numbers: dict[str, str] = {}
    tried = _limit_dialogues(fit.dialogues)
    for task in islice(proposed, MAX_TASKS + 1):
        if len(tasks) == MAX_TASKS:
            notes.append(f"More than {MAX_TASKS} fields look like labels. The others are left out.")
            break
        section, note = _try_task(task, tried)
        if note or (section and task.note):
            notes.append(note or task.note)
        if section is None:
            continue
        name = _format_task_name(task.name, tasks)
        tasks[name] = section
        values = [v for value in task.values for v in _as_list(value)]
        counts[name] = Counter(format_label(value) for value in values if not is_null(value))
        if "numbers" in (types := list_type_names(values)):
            numbers[name] = " and ".join(types)
    unused, texts = _find_unused_fields(fit.model, tasks, columns, turn_columns)
    located_notes = tuple(f"{location}: {note}" for note in notes)
    example = tuple(_format_example(fit, tasks))
    return Guess(fit.section, tasks, counts, numbers, unused, texts, located_notes, example)


def _describe_turn_marks(fit: DialogueFit) -> Iterator[str]:
    """Yield a note if most texts contain a mark that may separate turns."""
    texts = [dialogue.context for dialogue in fit.dialogues]
    for mark in TURN_MARKS:
        marked = sum(mark in text for text in texts)
        if marked >= MIN_FRACTION * len(texts):
            field_name = ", ".join(fit.model.texts)
            yield (
                f"{field_name}: {mark!r} occurs in {marked:,} of {len(texts):,} texts and may "
                "separate turns. If it does, write a line end instead of it, and set "
                f"dialogue.turns to {field_name}."
            )


def _describe_mixed_turns(turns: str, values: Sequence[Any]) -> Iterator[str]:
    """Yield a note if the turns are a text in some rows and a list in others."""
    texts = [value for value in values if isinstance(value, str) and not is_null(value)]
    if texts and len(texts) < len(values) and any(isinstance(v, list | tuple) for v in values):
        yield (
            f"{turns} is a text instead of a list in {len(texts):,} of {len(values):,} rows "
            f"(such as {texts[0]!r:.60}). Each line of the text is read as a turn."
        )


def _limit_rows(rows: Sequence[SourceRow]) -> Sequence[SourceRow]:
    """Return the first rows, with at most ``MAX_VALUES`` values in total."""
    left = MAX_VALUES
    for number, row in enumerate(rows):
        left -= sum(len(v) if isinstance(v, list | tuple) else 1 for v in row.values.values())
        if left < 0:
            return rows[: max(number, 1)]
    return rows


def _limit_dialogues(dialogues: Sequence[DeclaredDialogue]) -> Sequence[DeclaredDialogue]:
    """Return the first dialogues, with at most ``MAX_TURNS`` turns in total."""
    left = MAX_TURNS
    for number, dialogue in enumerate(dialogues):
        left -= len(dialogue.turns)
        if left < 0:
            return dialogues[: max(number, 1)]
    return dialogues


def _format_example(fit: DialogueFit, tasks: Mapping[str, Section]) -> list[str]:
    first = fit.dialogues[0]
    example = next((d for d in fit.dialogues if len(d.turns) > 1), first)
    readers = [TaskReader(name, TaskSection.model_validate(of)) for name, of in tasks.items()]
    return format_dialogue(example, readers)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _format_task_name(key: str, names: Container[str]) -> str:
    name = re.sub(r"[^A-Za-z0-9_]", "_", key)[:60].strip("_") or "task"
    while name in names:
        name += "_2"
    return name


# --- tasks ---


def _propose_tasks(
    model: DialogueSection,
    plain: Rows,
    columns: Columns,
    groups: Sequence[Columns],
    decoded: set[str],
) -> Iterator[TaskGuess]:
    in_turn = {_get_first_key(path) for path in (*model.texts, model.speaker, model.order) if path}
    if model.turns is None:
        used = in_turn | {model.id_field or ""}
        yield from propose_row_tasks(columns, used, groups if model.id_field else [], decoded)
        return
    yield from propose_turn_tasks(model.turns, groups, in_turn)
    beside = (
        list(propose_parallel_list_tasks(model.turns, plain))
        if LIST_MARK not in model.turns
        else []
    )
    yield from beside
    used = {model.id_field or "", _get_first_key(model.turns), *(task.name for task in beside)}
    yield from propose_row_tasks(columns, used, [], decoded)


def _get_first_key(path: str) -> str:
    """Return the part of a path before the first ``[]``."""
    return path.partition(LIST_MARK)[0]


def _try_task(task: TaskGuess, dialogues: Sequence[DeclaredDialogue]) -> tuple[Section | None, str]:
    """Return the first task candidate that fits most dialogues, and a note.

    The candidate is None if there is none, and the note may be empty.
    """
    error = ""
    for section in task.sections:
        try:
            model = TaskSection.model_validate({**section, "missing": "skip"})
        except ValidationError:
            continue
        reader = TaskReader(task.name, model)
        read = failed = 0
        for dialogue in dialogues:
            try:
                read += len(list(reader.read_instances(dialogue)))
            except DataError as problem:
                failed += 1
                error = error or str(problem)
        if failed > (1 - MIN_FRACTION) * len(dialogues):
            continue
        about_turns = model.kind == "utterance_classification" or reader.listed
        has_none = any(isinstance(value, list | tuple) and not value for value in task.values)
        are_few = reader.skipped <= (1 - MIN_FRACTION) * (read + reader.skipped)
        if about_turns or (are_few and not has_none):
            return section, ""
        if read < MIN_ANSWERS:
            return None, ""
        return {**section, "missing": "skip"}, ""
    label = task.sections[0]["label"]
    return None, f"{label} looks like a label, but cannot be read as one ({error})" if error else ""


# --- unused fields ---


def _find_unused_fields(
    model: DialogueSection, tasks: Mapping[str, Section], columns: Columns, turn_columns: Columns
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields that a declaration does not use, and those of them that are texts."""
    within = f"{model.turns}{LIST_MARK}." if model.turns else ""
    used = [f"{within}{path}" for path in (*model.texts, model.speaker, model.order) if path]
    used += [path for path in (model.id_field, model.turns) if path]
    for section in tasks.values():
        used += [v for k, v in section.items() if k not in ("kind", "missing")]
    fields = columns if not within else columns | {within + k: v for k, v in turn_columns.items()}
    unused = [
        path
        for path in fields
        if not any(
            name == path or name.startswith((f"{path}.", f"{path}{LIST_MARK}")) for name in used
        )
        and not any(path.startswith(f"{name}.") for name in used)
    ]
    outer = [path for path in unused if not _has_list_index(path)]
    texts = tuple(path for path in outer if _is_prose(fields[path]))
    return tuple(outer), texts


def _has_list_index(path: str) -> bool:
    """Return whether a path contains an index into a list."""
    return any(key.isdecimal() for key in path.split(".")[1:-1])


def _is_prose(values: Sequence[Any]) -> bool:
    items = [item for value in values for item in _as_list(value) if item is not None]
    texts = list[Any]()
    for item in items:
        is_object = isinstance(item, Mapping)
        texts += [v for v in item.values() if isinstance(v, str)] if is_object else [item]
    are_texts = is_mostly_true(isinstance(item, str) for item in texts)
    return (
        are_texts and compute_mean_words([t for t in texts if isinstance(t, str)]) > MIN_TEXT_WORDS
    )
