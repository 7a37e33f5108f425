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
from tasktransfer.datasets.declared.row_fields import get_value
from tasktransfer.datasets.declared.section import DialogueSection
from tasktransfer.datasets.declared.source_row import SourceRow
from tasktransfer.datasets.guess.columns import MOST, collect_columns, find_unnamed, index_items
from tasktransfer.datasets.guess.dialogues import Section, propose_dialogues
from tasktransfer.datasets.guess.order import find_order
from tasktransfer.errors import DataError, escape_line

MOST_CANDIDATES = 12


@dataclass(frozen=True)
class DialogueFit:
    """A candidate and the dialogues that it reads.

    Args:
        section: the candidate, as a declaration has it.
        model: the candidate, validated.
        share: fraction of rows, or of dialogues of several rows, that it can read.
        dialogues: dialogues with at least one turn, without turns that have no text.
        error: first error that it raised.
        notes: notes about it for the user.
    """

    section: Section
    model: DialogueSection
    share: float
    dialogues: tuple[DeclaredDialogue, ...]
    error: DataError | None = None
    notes: tuple[str, ...] = ()

    def turn_objects(self) -> Iterator[list[Any]]:
        """Yield the objects of each dialogue's turns, in the file's order."""
        for dialogue in self.dialogues:
            turns = dialogue.by_place
            yield [index_items(turns[place].values) for place in sorted(turns)]


def fit_dialogue(rows: Sequence[SourceRow], location: str) -> DialogueFit:
    """Return the candidate that reads the most rows.

    The first, most likely candidate that reads most rows (``MOST``) ends the search.

    Raises:
        DataError: no field looks like the text of turns, or no row can be read.
    """
    best: DialogueFit | None = None
    plain = [row.values for row in rows]
    for section in islice(propose_dialogues(plain), MOST_CANDIDATES):
        fit = _try(section, rows)
        if fit is not None and (best is None or fit.share > best.share):
            best = fit
        if best is not None and best.share >= MOST:
            break
    if best is None:
        fields = ", ".join(collect_columns(plain))
        unnamed = ", ".join(find_unnamed(plain))
        rename = (
            f" Rename {escape_line(unnamed)[:200]}, which no declaration can name."
            if unnamed
            else ""
        )
        raise DataError(
            f"{location}: No field looks like the text of a dialogue (found "
            f"{fields[:500] or 'no field'}).{rename} Write the "
            "declaration into a YAML file yourself, with dialogue: {turns: LIST, text: FIELD} or "
            "dialogue: {text: FIELD}, and give it to `tasktransfer init --dataset`."
        )
    if not best.dialogues:
        raise best.error or DataError(f"{location}: No row has a text. Check its fields.")
    return _sort_turns(_skip_empty(best), rows)


def _try(section: Section, rows: Sequence[SourceRow]) -> DialogueFit | None:
    """Read rows with a candidate, skipping turns without text.

    Returns:
        None if the candidate is not valid.
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


def _skip_empty(fit: DialogueFit) -> DialogueFit:
    """Return a fit that skips turns without text if that seems intended.

    That is so if many dialogues have such turns, or if these turns hold something else, such as a
    tool call.
    """
    affected = [dialogue for dialogue in fit.dialogues if dialogue.empty]
    empty = [values for dialogue in affected for values, _ in dialogue.empty]
    turns = (turn.values for dialogue in fit.dialogues for turn in dialogue.turns)
    are_few = len(affected) <= (1 - MOST) * len(fit.dialogues)
    if not affected or (are_few and not _has_extra_field(empty, turns)):
        return fit
    note = (
        f"{len(empty):,} turns of {len(affected):,} dialogues have no text; skip: empty leaves "
        "them and their labels out"
    )
    return replace(fit, section={**fit.section, "skip": "empty"}, notes=(*fit.notes, note))


def _has_extra_field(empty: Sequence[Any], turns: Iterable[Any]) -> bool:
    """Return whether every turn without text has a field that no turn with text has."""
    usual = {key for values in turns for key in _list_filled_keys(values)}
    return all(any(key not in usual for key in _list_filled_keys(values)) for values in empty)


def _list_filled_keys(values: Any) -> list[str]:
    if not isinstance(values, Mapping):
        return []
    return [str(key) for key, value in values.items() if value not in (None, "", [], {})]


def _sort_turns(fit: DialogueFit, rows: Sequence[SourceRow]) -> DialogueFit:
    """Return a fit that sorts turns by their number or time if the file is not in that order."""
    groups: dict[str, list[list[Any]]] = {}
    objects_of = list(fit.turn_objects()) if fit.model.texts else []
    for objects in objects_of:
        for key, values in collect_columns(objects).items():
            if len(values) == len(objects):
                groups.setdefault(key, []).append(values)
    order = find_order({key: of for key, of in groups.items() if len(of) == len(objects_of)})
    found = _try({**fit.section, "order": order}, rows) if order else None
    if order is None or found is None or found.share < fit.share:
        return fit
    first = ", ".join(str(value)[:30] for value in groups[order][0][:4])
    note = (
        f"{order} looks like the order of turns, but is {first} in the first dialogue of the file. "
        f"The line order: {order} sorts them. Remove it if the order of the file is correct."
    )
    return replace(found, notes=(*fit.notes, note))
