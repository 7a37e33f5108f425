"""Lists and objects in the texts of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tasktransfer.datasets.declared import cells
from tasktransfer.datasets.declared.source_row import SourceRow
from tasktransfer.datasets.guess.columns import MIN_FRACTION, is_null
from tasktransfer.files import json_text


@dataclass(frozen=True)
class ParsedCells:
    """Fields with lists or objects as texts, and notes about them.

    Args:
        keys: fields whose texts are lists or objects.
        notes: notes for the user.
    """

    keys: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def parse_cells(rows: Sequence[SourceRow]) -> tuple[list[SourceRow], ParsedCells]:
    """Parse cells whose texts are lists or objects.

    Returns:
        The rows with parsed values, and the parsed fields with notes.
    """
    plain, decoded = [dict(row.values) for row in rows], ParsedCells()
    for key in {key: None for row in plain for key, value in row.items() if isinstance(value, str)}:
        filled = [row for row in plain if not is_null(row.get(key))]
        found = [row for row in filled if _can_be_structure(row[key])]
        if not found or len(found) < MIN_FRACTION * len(filled):
            continue
        values = [_parse_or_none(row[key]) for row in found]
        broken = sum(value is None for value in values)
        if broken > (1 - MIN_FRACTION) * len(found):
            decoded.notes.append(
                f"{key} begins like a list in {len(found):,} of {len(filled):,} rows, but "
                f"{broken:,} are neither JSON nor a Python list. Write lists as JSON (json.dumps)."
            )
            continue
        form = "as JSON" if _is_json(str(found[0][key])) else "in Python's notation"
        decoded.keys.add(key)
        decoded.notes.append(f"{key} has lists or objects as text ({form}), which are decoded.")
        for row, value in zip(found, values, strict=True):
            row[key] = row[key] if value is None else value
    pairs = zip(rows, plain, strict=True)
    return [SourceRow(row.number, values, row.location) for row, values in pairs], decoded


def _can_be_structure(value: Any) -> bool:
    return isinstance(value, str) and cells.is_like_structure(value)


def _parse_or_none(text: Any) -> Any:
    try:
        return cells.parse_structure(text)
    except ValueError:
        return None


def _is_json(text: str) -> bool:
    try:
        json_text.loads(text)
    except ValueError:
        return False
    return True
