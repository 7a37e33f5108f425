"""Candidates for the section ``tasks`` of a declaration: fields that may be gold answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tasktransfer.datasets.declared import cells
from tasktransfer.datasets.declared.row_fields import LIST_MARK
from tasktransfer.datasets.guess.columns import (
    MAX_LABELS,
    MAX_NAMED_LABELS,
    MIN_FRACTION,
    Columns,
    are_labels,
    are_lists_of_labels,
    collect_columns,
    flatten_object,
    get_last_key,
    is_null,
    list_items,
    split_field_name,
)
from tasktransfer.datasets.guess.dialogues import Rows, Section
from tasktransfer.datasets.guess.names import are_split_names, is_id_name
from tasktransfer.datasets.guess.turn_fields import TIME_WORDS, is_order_field
from tasktransfer.errors import format_quantity

ANSWER_NAMES = ("answer", "answers", "gold")
SEPARATORS = ("|", ";")
"""Characters between the labels of a text that has several (``multi_label``)."""
ANNOTATOR_WORDS = frozenset({"annotator", "annotators", "worker", "rater", "coder"})
"""Words in the names of fields that name the annotator of the labels."""
LABEL_WORDS = frozenset(
    (
        *("label", "intent", "class", "category", "topic", "emotion", "sentiment", "act", "tag"),
        *("mood", "domain"),
    )
)
"""Words in the names of labels, which may have many values or the form of an id."""


@dataclass(frozen=True)
class TaskGuess:
    """Candidates for a task.

    Args:
        name: name of the task.
        sections: candidates, most likely first.
        values: values of its label.
        note: note for the user. It may be empty.
    """

    name: str
    sections: tuple[Section, ...]
    values: Sequence[Any]
    note: str = ""


def propose_turn_tasks(
    turns: str, groups: Sequence[Columns], used: set[str]
) -> Iterator[TaskGuess]:
    """Yield candidate tasks from the fields of a turn.

    Args:
        turns: path of the list of turns.
        groups: fields of each dialogue's turns.
        used: fields that have another use.
    """
    for key, values in join_columns(groups).items():
        if key not in used and not is_order_field(key, _collect_values(groups, key)):
            yield from _propose_label_tasks(
                key, f"{turns}{LIST_MARK}.{key}", values, "utterance_classification"
            )


def join_columns(groups: Sequence[Columns]) -> Columns:
    """Concatenate the columns of all groups."""
    columns: Columns = {}
    for group in groups:
        for key, values in group.items():
            columns.setdefault(key, []).extend(values)
    return columns


def _collect_values(groups: Sequence[Columns], key: str) -> list[list[Any]]:
    return [group[key] for group in groups if key in group]


def propose_parallel_list_tasks(turns: str, rows: Rows) -> Iterator[TaskGuess]:
    """Yield candidate tasks from lists, parallel to the turns, with one label per turn."""
    flat = [dict(flatten_object(row)) for row in rows]
    sizes = [len(list_items(row.get(turns))) for row in flat]
    for key in collect_columns(rows):
        lists = [items for row in flat if (items := _list_field_items(row.get(key))) is not None]
        if key == turns or len(lists) < len(flat):
            continue
        fits = sum(len(items) == size for items, size in zip(lists, sizes, strict=True))
        values = [value for items in lists for value in items]
        if fits >= MIN_FRACTION * len(lists) and len(values) > len(lists) and are_labels(values):
            section = {"kind": "utterance_classification", "label": f"{key}{LIST_MARK}"}
            yield TaskGuess(key, (section,), values)


def _list_field_items(value: Any) -> list[Any] | None:
    return None if isinstance(value, dict) else cells.list_items(value)


def propose_row_tasks(
    columns: Columns, used: set[str], groups: Sequence[Columns], cells: set[str]
) -> Iterator[TaskGuess]:
    """Yield candidate tasks from the fields of a row.

    Args:
        columns: fields of the rows.
        used: fields that have another use.
        groups: fields of each dialogue's rows if a row is an utterance. Otherwise empty.
        cells: fields whose lists are in the texts of cells. They can only be multi_label tasks.
    """
    within = tuple(f"{key}." for key in used if key)
    free = {
        key: values
        for key, values in columns.items()
        if key not in used and not key.startswith(within)
    }
    for task, keys in _propose_choices(free):
        yield task
        free = {key: values for key, values in free.items() if key not in keys}
    for key, values in free.items():
        in_groups = _collect_values(groups, key)
        if in_groups and is_order_field(key, in_groups):
            continue
        differs = any(len({str(v) for v in group if not is_null(v)}) > 1 for group in in_groups)
        kind = "utterance_classification" if differs else "dialogue_classification"
        for task in _propose_label_tasks(key, key, values, kind):
            sections = task.sections[-1:] if key in cells else task.sections
            is_common = sections[0]["kind"] == "dialogue_classification"
            if is_common and (part := _find_labelled_part(in_groups)):
                sections = tuple({**section, "keeps": part} for section in sections)
            single = _describe_single_labels(key, in_groups) if is_common else ""
            # Rows that differ cannot have several labels each, as the task's note would propose.
            note = ". ".join(filter(None, ("" if differs else task.note, single)))
            yield replace(task, sections=sections, note=note)


def _find_labelled_part(groups: Sequence[list[Any]]) -> str:
    """Return the part of a dialogue to keep if only its first or only its last row has a label.

    Args:
        groups: values of a field in each dialogue's rows.

    Returns:
        ``start``, ``end``, or "" if the labels of most dialogues are elsewhere or in several rows.
    """
    several = [values for values in groups if len(values) > 1]
    labelled = [[n for n, value in enumerate(v) if not is_null(value)] for v in several]
    last = [len(values) - 1 for values in several]
    for part, places in (("start", [0] * len(several)), ("end", last)):
        fits = sum(found == [place] for found, place in zip(labelled, places, strict=True))
        if several and fits >= MIN_FRACTION * len(several):
            return part
    return ""


def _describe_single_labels(key: str, groups: Sequence[list[Any]]) -> str:
    """Return a note if most dialogues have a value in only one of their rows, otherwise "".

    The value may be the label of the dialogue or of this turn.

    Args:
        key: field of the label.
        groups: values of each dialogue's rows.
    """
    several = [values for values in groups if len(values) > 1]
    single = sum(sum(not is_null(value) for value in values) == 1 for values in several)
    if 2 * single <= len(several):
        return ""
    part = _find_labelled_part(groups)
    return (
        f"{key}: only one row has a value in {single:,} of {len(groups):,} dialogues. It is read "
        "as the label of the whole dialogue. If it is the label of this turn, set kind: "
        "utterance_classification."
        + (
            f" Dialogues that are too long are truncated to their {part} (keeps: {part})."
            if part
            else ""
        )
    )


def _propose_label_tasks(
    key: str, path: str, values: Sequence[Any], kind: str
) -> Iterator[TaskGuess]:
    words = split_field_name(get_last_key(key))
    is_other = words & ANNOTATOR_WORDS or words & TIME_WORDS or are_split_names(values)
    if is_other or (is_id_name(get_last_key(key)) and not words & LABEL_WORDS):
        return
    if are_labels(values, MAX_NAMED_LABELS if words & LABEL_WORDS else MAX_LABELS):
        note = _describe_joined_labels(key, values)
        yield TaskGuess(key, ({"kind": kind, "label": path},), values, note)
    elif are_lists_of_labels(values):
        lists = [value for value in values if value]
        several = {"kind": "multi_label", "label": path}
        if all(
            len(value) == 1 for value in lists
        ):  # Some annotation tools write one label as a list.
            yield TaskGuess(key, ({"kind": kind, "label": path}, several), values)
        else:
            yield TaskGuess(key, (several,), values)


def _describe_joined_labels(key: str, values: Sequence[Any]) -> str:
    """Return a note if values look like several labels in one text, otherwise "".

    Values look like several labels if a part of a value between separators also occurs elsewhere.
    """
    texts = {value.strip() for value in values if isinstance(value, str)}
    for separator in SEPARATORS:
        parts = Counter(part.strip() for text in texts for part in text.split(separator))
        joined = sorted(text for text in texts if separator in text)
        if joined and any(parts[part.strip()] > 1 for part in joined[0].split(separator)):
            return (
                f"{key}: values like {joined[0]!r} may be several labels with {separator!r} "
                "between them; if they are, set kind: multi_label"
            )
    return ""


def _propose_choices(free: Columns) -> Iterator[tuple[TaskGuess, set[str]]]:
    """Yield candidate tasks with a question or options, and the fields that each uses."""
    options = next((k for k in free if "option" in k.lower() or "choice" in k.lower()), None)
    if (
        options and "accept" in free
    ):  # This is Prodigy's format, in which answer is accept, reject or ignore.
        others = sum(value not in (None, "accept") for value in free.get("answer", ()))
        verb, them = ("is", "it") if others == 1 else ("are", "them")
        note = (
            f"{format_quantity(others, 'row')} whose answer is not accept {verb} read as well. "
            f"Remove {them}."
        )
        for task in _propose_label_tasks(
            "accept", "accept", free["accept"], "dialogue_classification"
        ):
            yield replace(task, note=note if others else ""), {"accept", options, "answer"}
        return
    question = next((key for key in free if "question" in key.lower()), None)
    answer = next((key for key in free if key.lower() in (*ANSWER_NAMES, "label", "right")), None)
    if options and answer and all(isinstance(v, list | tuple) for v in free[options]):
        about = {"question": question} if question else {}
        section = {"kind": "multiple_choice", **about, "options": options, "label": answer}
        yield TaskGuess("choice", (section,), free[answer]), {options, answer, question or ""}
    elif question and answer:
        section = {"kind": "question_answering", "question": question, "label": answer}
        yield TaskGuess("question_answering", (section,), ()), {question, answer}
