"""Comparison of the local and the offered rows of a node."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tasktransfer.errors import RecordError
from tasktransfer.operate.coded_answers import remove_quotations
from tasktransfer.results.comparing import find_shared_tasks
from tasktransfer.results.rows import read_rows
from tasktransfer.results.schema import Record

COMPARED = [
    *("task", "index", "instance_id", "prediction", "gold", "score"),
    *("predicted_value", "gold_value"),
]
"""Columns of rows that must be equal."""


def compare_rows(out: Path, offered: Path, ours: Record, theirs: Record) -> list[str]:
    """Return a list with a message if local and offered rows differ.

    Other versions of the library may pack equal rows into different files, so content is compared.

    Args:
        out: folder of the local node.
        offered: folder of the offered node.
        ours: the local record.
        theirs: the offered record.
    """
    mine, other = ours["rows"], theirs["rows"]
    if mine is None or other is None or mine["sha256"] == other["sha256"]:
        return []
    try:
        # Only instances and answers are compared.
        shared = find_shared_tasks(ours, theirs)
        here, there = (
            _select_comparable_rows(read_rows(folder / rows["file"], rows), shared)
            for folder, rows in ((out, mine), (offered, other))
        )
    except RecordError as error:
        return [f"{mine['file']}: The SHA-256 differ, and the rows cannot be compared ({error})"]
    if here.equals(there):
        return []
    # A pack contains codes if answers quote a dialogue.
    in_codes = [_encode_rows(out, ours, rows) for rows in (here, there)]
    alike = in_codes[0].equals(in_codes[1])
    return [] if alike else [f"{mine['file']}: The rows differ"]


def _encode_rows(folder: Path, record: Record, rows: pa.Table) -> pa.Table:
    """Encode rows as in a pack, or return them unchanged if they must not be shared."""
    try:
        return remove_quotations(folder, record, rows)
    except RecordError:
        return rows


def _select_comparable_rows(rows: pa.Table, tasks: set[str] | None) -> pa.Table:
    """Return the parts of rows that must agree, for shared tasks only if these are given."""
    compared = rows.select(COMPARED).replace_schema_metadata()
    if tasks is None:
        return compared
    of_tasks = compared.filter(pc.is_in(compared["task"], pa.array(sorted(tasks), pa.string())))
    return of_tasks.drop_columns(["index"])
