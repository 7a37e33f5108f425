"""A row of a file, with its place."""

from __future__ import annotations

from typing import Any, NamedTuple

from tasktransfer.files.fields import Location, Table

MEND = "mend it"
ITEMS_KEY = "items"
"""The field that has the items of a row that is a list."""


class SourceRow(NamedTuple):
    """``number``: the line on which a row of JSON lines or CSV begins, elsewhere the number of the
    row or item, from 1."""

    number: int
    values: Table
    location: Location


def make_row(number: int, value: Any, location: Location) -> SourceRow:
    """Return a row that holds an object, or a list of objects, lists or texts as ``items``.

    Raises:
        DataError: the value is another one.
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
    raise location.error(f"found {value!r:.40}, expected an object in braces", remedy)
