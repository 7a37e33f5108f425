"""Trials of candidates for the section ``dialogue`` of a declaration.

Candidates are tried on rows with the code that reads them for a study.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any

from pydantic import ValidationError

from tasktransfer.datasets.declared.dialogues import DeclaredDialogue, read_dialogues
from tasktransfer.datasets.declared.row_fields import SourceRow, get_value
from tasktransfer.datasets.declared.section import DialogueSection
from tasktransfer.datasets.guess.columns import (
    MIN_FRACTION,
    are_labels,
    collect_columns,
    convert_list_to_object,
    find_unnameable_fields,
)
from tasktransfer.datasets.guess.dialogues import Section, propose_dialogues
from tasktransfer.datasets.guess.turn_fields import (
    find_alternating_field,
    find_unsorted_order_field,
)
from tasktransfer.errors import DataError, escape_line, format_quantity

MAX_CANDIDATES = 12


@dataclass(frozen=True)
class DialogueFit:
    """A candidate and the dialogues that can be read with it.

    Args:
        section: the candidate, as a declaration has it.
        model: the candidate, validated.
        share: fraction of rows, or of dialogues of several rows, that can be read.
        dialogues: dialogues with at least one turn, without turns that have no text.
        error: first error that was raised.
        notes: notes about it for the user.
    """

    section: Section
    model: DialogueSection
    share: float
    dialogues: tuple[DeclaredDialogue, ...]
    error: DataError | None = None
    notes: tuple[str, ...] = ()

    def iterate_turn_objects(self) -> Iterator[list[Any]]:
        """Yield the objects of each dialogue's turns, in the order of the file."""
        for dialogue in self.dialogues:
            turns = dialogue.turn_by_place
            yield [convert_list_to_object(turns[place].values) for place in sorted(turns)]


def fit_dialogue(rows: Sequence[SourceRow], location: str) -> DialogueFit:
    """Return the candidate with which most rows can be read.

    The search ends at the first candidate with which the fraction ``MIN_FRACTION`` can be read.

    Raises:
        DataError: no field looks like the text of turns, or no row can be read.
    """
    best: DialogueFit | None = None
    plain = [row.values for row in rows]
    for section in islice(propose_dialogues(plain), MAX_CANDIDATES):
        fit = _fit_candidate(section, rows)
        if fit is not None and (best is None or fit.share > best.share):
            best = fit
        if best is not None and best.share >= MIN_FRACTION:
            break
    if best is None:
        fields = ", ".join(collect_columns(plain))
        unnamed = ", ".join(find_unnameable_fields(plain))
        rename = (
            f" Rename {escape_line(unnamed)[:200]}, which a declaration cannot name."
            if unnamed
            else ""
        )
        raise DataError(
            f"{location}: No field looks like the text of a dialogue (the fields are "
            f"{fields[:500] or 'missing'}).{rename}{_describe_repetition(plain)} Write the "
            "declaration into a YAML file yourself, with dialogue: {turns: LIST, text: FIELD} or "
            "dialogue: {text: FIELD}, and pass the file to `tasktransfer init --dataset`."
        )
    if not best.dialogues:
        raise best.error or DataError(
            f"{location}: No row has a text. Check the fields of the file."
        )
    return _add_turn_order(_add_speaker(_add_empty_turn_rule(best), rows), rows)


def _describe_repetition(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence on texts and lists that are the same in all rows, or "" without any."""
    repeated = [
        name
        for name, value in (rows[0].items() if len(rows) > 1 else ())
        if (isinstance(value, list) or len(str(value).split()) > 2)
        and all(row.get(name) == value for row in rows)
    ]
    names = escape_line(", ".join(repeated))[:200]
    return f" The value is the same in all {len(rows):,} rows: {names}." if names else ""


def _fit_candidate(section: Section, rows: Sequence[SourceRow]) -> DialogueFit | None:
    """Fit a candidate to rows, ignoring turns without text.

    The result is None if the candidate is not valid.
    """
    try:
        model = DialogueSection.model_validate({**section, "skip": "empty"})
    except ValidationError:
        return None
    groups: Iterable[Sequence[SourceRow]] = ([row] for row in rows)
    if model.by_turn:
        named = groupby(rows, key=lambda row: _read_name(row, str(model.id_field)))
        groups = (list(group) for _, group in named)
    dialogues: list[DeclaredDialogue] = []
    count, failed, error = 0, 0, None
    for group in groups:
        count += 1
        try:
            dialogues += read_dialogues(group, model, "row")
        except DataError as problem:
            failed += 1
            error = error or problem
    read = tuple(dialogue for dialogue in dialogues if dialogue.turns)
    share = (1 - failed / count) * len(read) / max(len(dialogues), 1)
    return DialogueFit(section, model, share, read, error)


def _read_name(row: SourceRow, field: str) -> str:
    try:
        return str(get_value(row.values, field, row.location))
    except DataError:
        return ""


def _add_empty_turn_rule(fit: DialogueFit) -> DialogueFit:
    """Add ``skip: empty`` to a fit if turns without text seem to be intended.

    They seem intended if many dialogues have them, or if they contain something else, such as a
    tool call.
    """
    affected = [dialogue for dialogue in fit.dialogues if dialogue.empty]
    empty = [values for dialogue in affected for values, _ in dialogue.empty]
    turns = (turn.values for dialogue in fit.dialogues for turn in dialogue.turns)
    are_few = len(affected) <= (1 - MIN_FRACTION) * len(fit.dialogues)
    if not affected or (are_few and not _has_extra_field(empty, turns)):
        return fit
    note = (
        f"{format_quantity(len(empty), 'turn')} of {format_quantity(len(affected), 'dialogue')} "
        f"{'has' if len(empty) == 1 else 'have'} no text. With skip: empty, turns without text "
        "and their labels are left out."
    )
    return replace(fit, section={**fit.section, "skip": "empty"}, notes=(*fit.notes, note))


def _has_extra_field(empty: Sequence[Any], turns: Iterable[Any]) -> bool:
    """Return whether all turns without text have a field that other turns lack."""
    usual = {key for values in turns for key in _list_filled_keys(values)}
    return all(any(key not in usual for key in _list_filled_keys(values)) for values in empty)


def _list_filled_keys(values: Any) -> list[str]:
    if not isinstance(values, Mapping):
        return []
    return [str(key) for key, value in values.items() if value not in (None, "", [], {})]


def _add_speaker(fit: DialogueFit, rows: Sequence[SourceRow]) -> DialogueFit:
    """Add ``speaker`` to a fit if a field with an unusual name alternates like speakers."""
    model = fit.model
    if model.speaker is not None or not model.texts or not (model.turns or model.id_field):
        return fit
    groups = [collect_columns(objects) for objects in fit.iterate_turn_objects()]
    used = {*model.texts, model.order, model.id_field}
    columns = collect_columns(row.values for row in rows)
    whole = () if model.turns is None else columns.values()
    name = find_alternating_field(groups, used, has_label=any(map(are_labels, whole)))
    found = _fit_candidate({**fit.section, "speaker": name}, rows) if name else None
    if name is None or found is None or found.share < fit.share:
        return fit
    note = (
        f"{name} alternates from turn to turn, so it is read as the speaker. If it is a label, "
        "remove the key speaker and add a task."
    )
    return replace(found, notes=(*fit.notes, note))


def _add_turn_order(fit: DialogueFit, rows: Sequence[SourceRow]) -> DialogueFit:
    """Add ``order`` to a fit if turns are not sorted by their number or time."""
    groups: dict[str, list[list[Any]]] = {}
    objects_by_dialogue = list(fit.iterate_turn_objects()) if fit.model.texts else []
    for objects in objects_by_dialogue:
        for key, values in collect_columns(objects).items():
            if len(values) == len(objects):
                groups.setdefault(key, []).append(values)
    order = find_unsorted_order_field(
        {k: g for k, g in groups.items() if len(g) == len(objects_by_dialogue)}
    )
    found = _fit_candidate({**fit.section, "order": order}, rows) if order else None
    if order is None or found is None or found.share < fit.share:
        return fit
    first = ", ".join(str(value)[:30] for value in groups[order][0][:4])
    note = (
        f"{order} looks like the order of turns, but is {first} in the first dialogue of the file. "
        f"The key order: {order} sorts them. Remove it if the order of the file is correct."
    )
    return replace(found, notes=(*fit.notes, note))
