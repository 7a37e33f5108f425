"""Typed access to values in a data file's JSON, with errors that name the location.

Each function returns the value of a key if it has the expected type, and raises DataError
otherwise. Other keys are ignored.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tasktransfer.errors import (
    DataError,
    describe_wrong_value,
    escape_line,
    format_location,
    format_problem,
)

Table = dict[str, object]


@dataclass(frozen=True, slots=True)
class Location:
    """The location of a value in a release: file, line or row, dialogue, instance, and key path.

    Attributes:
        row: description of a row without a line of its own, such as ``row 12`` or ``item 3``. With
            ``line``, an item in that line.
        remedy: end of every message about the location, without a full stop; empty if each problem
            has its own remedy.
        line: line number in the file from 1, None if it is unknown.
    """

    file: str
    dialogue: str = ""
    instance: str = ""
    path: str = ""
    row: str = ""
    remedy: str = ""
    line: int | None = None

    def at(self, key: str | int) -> Location:
        """Return the location of a member of this location's value."""
        if isinstance(key, int):
            path = f"{self.path}[{key}]"
        else:
            path = f"{self.path}.{key}" if self.path else key
        return Location(
            *(self.file, self.dialogue, self.instance, path, self.row, self.remedy, self.line)
        )

    def locate_instance(self, instance: str) -> Location:
        """Return the location for a part of the annotation ``instance``."""
        return Location(
            *(self.file, self.dialogue, instance, self.path, self.row, self.remedy, self.line)
        )

    def locate_row(self, row: str) -> Location:
        """Return the location of the row, without a key path."""
        return Location(*(self.file, self.dialogue, self.instance, "", row, self.remedy, self.line))

    def locate_item(self, number: int) -> Location:
        """Return the location of an item of the row (numbered from 1)."""
        return self.locate_row(f"{self.row}.{number}" if self.row else f"item {number}")

    @property
    def place(self) -> str:
        """File with line or row number as text."""
        place = format_location(self.file, self.line)
        return escape_line(f"{place}, {self.row}" if self.row else place)

    @property
    def number(self) -> str:
        """Number of the line or row (``12``), or of an item in it (``12.3``)."""
        inner = self.row.rpartition(" ")[2]
        if self.line is None:
            return inner
        return f"{self.line}.{inner}" if inner else str(self.line)

    def error(self, problem: str, remedy: str = "") -> DataError:
        """Return a DataError at this location, with ``remedy`` or the location's remedy."""
        parts = [
            format_location(self.file, self.line),
            self.row,
            f"dialogue {self.dialogue!r}" if self.dialogue else "",
            f"instance {self.instance!r}" if self.instance else "",
            self.path,
        ]
        place = escape_line(", ".join(part for part in parts if part))
        return DataError(format_problem(place, problem, remedy or self.remedy))


def find_nearest(value: str, valid: Iterable[str]) -> str:
    """Return the name in ``valid`` that is nearest to ``value``, quoted for a message."""
    names = list(valid)
    best = difflib.get_close_matches(value, names, n=1, cutoff=0.0)
    return repr(best[0]) if best else "none"


def get_member(table: Table, key: str, location: Location) -> object:
    """Return the value of a key. Raises DataError if the key is missing."""
    if key not in table:
        raise location.error(f"the key {key!r} is missing")
    return table[key]


def as_table(value: object, location: Location) -> Table:
    """Return a value that must be an object. Raises DataError for other values."""
    if not isinstance(value, dict):
        raise location.error(describe_wrong_value(value, "an object"))
    return value


def get_table(table: Table, key: str, location: Location) -> Table:
    """Return a key's value, which must be an object."""
    value = get_member(table, key, location)
    return value if isinstance(value, dict) else as_table(value, location.at(key))


def get_list(table: Table, key: str, location: Location) -> list[object]:
    """Return a key's value, which must be a list."""
    value = get_member(table, key, location)
    if not isinstance(value, list):
        raise location.at(key).error(describe_wrong_value(value, "a list"))
    return value


def get_text(table: Table, key: str, location: Location) -> str:
    """Return a key's value, which must be a text."""
    value = get_member(table, key, location)
    if not isinstance(value, str):
        raise location.at(key).error(describe_wrong_value(value, "a string"))
    return value


def get_name(table: Table, key: str, location: Location) -> str:
    """Return a key's value, which must be a non-empty text."""
    value = get_text(table, key, location)
    if not value.strip():
        raise location.at(key).error("the text is empty")
    return value


def get_integer(table: Table, key: str, location: Location) -> int:
    """Return a key's value, which must be an integer."""
    value = get_member(table, key, location)
    if not isinstance(value, int) or isinstance(value, bool):
        raise location.at(key).error(describe_wrong_value(value, "an integer"))
    return value


def get_flag(table: Table, key: str, location: Location) -> bool:
    """Return a key's value, which must be true or false."""
    value = get_member(table, key, location)
    if not isinstance(value, bool):
        raise location.at(key).error(describe_wrong_value(value, "true or false"))
    return value


def get_texts(table: Table, key: str, location: Location) -> tuple[str, ...]:
    """Return a key's value, which must be a list of texts."""
    values = get_list(table, key, location)
    for index, value in enumerate(values):
        if not isinstance(value, str):
            raise location.at(key).at(index).error(describe_wrong_value(value, "a string"))
    return tuple(str(value) for value in values)


def collect_texts(table: Table, key: str, inner: str, location: Location) -> tuple[str, ...]:
    """Collect the texts at key ``inner`` in the list of objects at ``key``."""
    values = get_list(table, key, location)
    texts = [value.get(inner) if isinstance(value, dict) else None for value in values]
    if all(isinstance(text, str) for text in texts):
        return tuple(map(str, texts))
    # Slower, with locations: one of these raises.
    return tuple(get_text(row, inner, spot) for row, spot in iterate_objects(table, key, location))


def iterate_objects(table: Table, key: str, location: Location) -> Iterator[tuple[Table, Location]]:
    """Yield the objects in the list at ``key`` with their locations."""
    list_location = location.at(key)
    for index, value in enumerate(get_list(table, key, location)):
        spot = list_location.at(index)
        yield as_table(value, spot), spot
