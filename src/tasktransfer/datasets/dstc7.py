"""Tab-separated tables in the archive of DSTC7's human evaluation (track 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tasktransfer.errors import DataError, format_location, format_missing_columns
from tasktransfer.files.data_files import decode_utf8, read_tar_member


def read_dstc7_contexts(file: Path) -> dict[str, str]:
    """Map each instance to its grounding paragraph.

    Raises:
        DataError: the archive or the table cannot be read, or a column is missing.
    """
    rows = read_dstc7_table(file, "context", ("InstanceID", "Context"))
    return {row[0]: row[1] for row in rows}


def read_dstc7_table(file: Path, name: str, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield given columns of each row, with "" for missing cells.

    Raises:
        DataError: the archive or the table cannot be read, or a column is missing.
    """
    head, *rows = read_dstc7_lines(file, name)
    if missing := [column for column in columns if column not in head]:
        raise DataError(
            f"{format_location(f'{file} ({name})', 1)}: {format_missing_columns(missing)} The "
            f"header has the columns {', '.join(head)!r:.80}. Copy the archive again."
        )
    places = [head.index(column) for column in columns]
    return (tuple(row[at] if at < len(row) else "" for at in places) for row in rows)


def read_dstc7_lines(file: Path, name: str) -> list[list[str]]:
    """Return the rows of a table, starting with the header.

    Raises:
        DataError: the archive or the table cannot be read, or the table is empty.
    """
    text = decode_utf8(read_tar_member(file, f"dstc7-task2-{name}.tsv"), file)
    lines = [line.rstrip("\r").split("\t") for line in text.split("\n") if line.strip()]
    if not lines:
        raise DataError(f"{file}: The table {name} is empty. Copy the archive again.")
    return lines
