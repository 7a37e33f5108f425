"""Rows of a file, with their locations."""

from __future__ import annotations

from typing import Any, NamedTuple

from tasktransfer.errors import describe_wrong_value
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
