"""Values of fields in rows: paths of keys, lists, and texts that contain lists or objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tasktransfer.datasets.declared import cells
from tasktransfer.errors import describe_wrong_value, format_value
from tasktransfer.files.fields import Location

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
