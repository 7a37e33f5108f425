"""A row of a file, with its place."""

from __future__ import annotations

from typing import NamedTuple

from tasktransfer.files.fields import Location, Table

MEND = "mend it"


class SourceRow(NamedTuple):
    """``number``: the line on which a row of JSON lines or CSV begins, elsewhere the number of the
    row or item, from 1."""

    number: int
    values: Table
    location: Location
