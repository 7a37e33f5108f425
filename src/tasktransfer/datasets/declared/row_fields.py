"""Rows of a file with their locations, values at paths in them, and sort keys of these values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from tasktransfer.datasets.declared import cells
from tasktransfer.errors import describe_wrong_value, format_value
from tasktransfer.files.fields import Location, Table

FIX_REMEDY = "correct the row"
ITEMS_KEY = "items"
"""Field for the items of a row that is a list."""


class SourceRow(NamedTuple):
    """A row of a file.

    Args:
        number: first line of a row of JSON lines or CSV. Otherwise the number of the row or item,
            from 1.
        values: fields of the row.
        location: file and row, which messages name.
    """

    number: int
    values: Table
    location: Location


def build_row(number: int, value: Any, location: Location) -> SourceRow:
    """Convert an object, or a list of objects, lists or texts, to a source row.

    Raises:
        DataError: the value has another type.
    """
    if isinstance(value, list) and any(
        value and all(isinstance(item, kind) for item in value) for kind in (dict, list, str)
    ):
        value = {ITEMS_KEY: value}
    if isinstance(value, dict):
        return SourceRow(number, value, location)
    remedy = location.remedy
    if isinstance(value, list):
        remedy = (
            "write each row as an object with the names of its fields "
            "(pandas.to_json(orient='records'))"
        )
    raise location.error(describe_wrong_value(value, "an object in braces"), remedy)


LIST_MARK = "[]"


def get_value(values: Any, field: str, location: Location) -> Any:
    """Return the value at a path of keys, or None if any key is missing or null.

    A number is an index of a list, and a key may contain dots. A text on the path is parsed as the
    list or object that it contains (``cells``).

    Raises:
        DataError: a value on the path is not an object.
    """
    rest = field
    while True:
        if isinstance(values, Mapping) and rest in values:
            return values[rest]
        if values is None:
            return None
        if isinstance(values, str) and cells.is_like_structure(values):
            try:
                values = cells.parse_structure(values)
            except ValueError as error:
                raise location.at(field).error(
                    f"the text {values:.40} is neither a list nor an object ({error})"
                ) from None
            continue
        key, _, rest = rest.partition(".")
        if isinstance(values, list | tuple) and key.isdecimal():
            values = values[int(key)] if len(key) < 10 and int(key) < len(values) else None
        elif isinstance(values, Mapping):
            values = values.get(key)
        else:
            raise location.at(field).error(
                f"the value that should contain the key {key!r} is {format_value(values)}, but it "
                "must be an object"
            )
        if not rest:
            return values


def get_joined_text(values: Any, path: str, location: Location) -> Any:
    """Return the text at a path, joining the texts of list items for ``[]``.

    Items that are texts are used unchanged, and so is a text instead of the list. Items without
    the key, such as images, are skipped.

    Raises:
        DataError: a value on the path is not an object.
    """
    key, mark, rest = path.partition(LIST_MARK)
    value = get_value(values, key, location) if key else values
    if not mark or not isinstance(value, list | tuple | Mapping):
        return value
    items = cells.list_items(value) if isinstance(value, Mapping) else value
    if items is None:
        return value
    rest = rest.removeprefix(".")
    parts = [
        get_joined_text(item, rest, location.at(key))
        if rest and not isinstance(item, str)
        else item
        for item in items
    ]
    invalid = next((part for part in parts if part is not None and not isinstance(part, str)), None)
    return invalid if invalid is not None else " ".join(part.strip() for part in parts if part)


def get_items(values: Any, path: str, location: Location) -> list[tuple[Any, Location]]:
    """Return the items of all lists at a path, with their locations.

    Raises:
        DataError: a value on the path is not a list.
    """
    result: list[tuple[Any, Location]] = []
    for value, at in find_lists(values, path, location):
        items = cells.list_items(value)
        if items is None:
            raise at.error(describe_wrong_value(value, "a list"))
        result += [(item, at.at(number)) for number, item in enumerate(items)]
    return result


def find_lists(values: Any, path: str, location: Location) -> Iterator[tuple[Any, Location]]:
    """Yield the lists at a path, in which ``[]`` stands for all items of a list."""
    key, mark, rest = path.partition(LIST_MARK)
    found = get_value(values, key, location) if key else values
    at = location.at(key) if key else location
    if not mark:
        yield found, at
        return
    items = cells.list_items(found)
    if items is None:
        raise at.error(describe_wrong_value(found, "a list"))
    for number, item in enumerate(items):
        yield from find_lists(item, rest.removeprefix("."), at.at(number))


def get_last_key(field: str) -> str:
    """Return the last non-numeric key of a path."""
    keys = [key.removesuffix(LIST_MARK) for key in field.split(".")]
    return next((key for key in reversed(keys) if not key.isdecimal()), keys[-1])


Keys = Sequence[Any]
_DIGITS = re.compile(r"(\d{1,18})")
_NOT_SORTABLE = re.compile(r"/|\b[ap]\.?m\b", re.IGNORECASE)
"""Marks of dates whose numbers do not sort by size: 1/2/2024, 9:59 PM."""


def build_sort_keys(values: Sequence[Any]) -> Keys | None:
    """Return sort keys for values that are numbers, dates or names with numbers (``d0_12``).

    The result is None if the values are of another kind or of different kinds.
    """
    for parse in (_parse_number, _parse_zoned_date, _parse_naive_date):
        keys = [parse(value) for value in values]
        if None not in keys:
            return keys
    parts = [_split_numbers(value) for value in values]
    if any(len(part) < 2 for part in parts) or len({tuple(part[::2]) for part in parts}) > 1:
        return None
    return [tuple(map(int, part[1::2])) for part in parts]


def _parse_number(value: Any) -> float | int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and "_" not in value:
        try:
            value = float(value)
        except ValueError:
            return None
    return value if isinstance(value, float) and math.isfinite(value) else None


def _parse_zoned_date(value: Any) -> datetime | None:
    """Parse a date with a time zone and convert it to UTC, or return None for other values."""
    found = _parse_date(value)
    return found.astimezone(UTC) if found is not None and found.tzinfo else None


def _parse_naive_date(value: Any) -> datetime | None:
    found = _parse_date(value)
    return found if found is not None and not found.tzinfo else None


def _parse_date(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    try:
        return datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


def _split_numbers(value: Any) -> list[str]:
    """Split a name into texts and numbers for sorting, or return [] for unsortable values."""
    if not isinstance(value, str) or _NOT_SORTABLE.search(value):
        return []
    return _DIGITS.split(value.strip())
