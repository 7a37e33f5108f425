"""Frames as self-describing Parquet files.

The footer has the study's ``Metadata`` and each column's type and meaning. A table is declared by
its columns, and written and read with them::

    COLUMNS = (
        ("task", TEXT, "task that is scored"),
        ("score", NUMBER, "score on its test split, 0-100"),
    )
    write_frame(folder / "scores.parquet", build_frame(rows, COLUMNS), COLUMNS, metadata)
    scores, metadata = read_frame(folder / "scores.parquet", COLUMNS)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tasktransfer.errors import RecordError
from tasktransfer.files import json_text, replace_file
from tasktransfer.results.frames import Columns
from tasktransfer.results.metadata import Metadata

REMEDY = "Run `tasktransfer collect` and `tasktransfer statistics` again"
"""Remedy for a table that cannot be read, unless a caller gives its own."""

_FOOTER_KEY = b"tasktransfer"
_CHUNK = 10_000
"""Number of rows that are Python objects at the same time, while a table is built."""


def build_schema(columns: Columns) -> pa.Schema:
    """Return the Arrow schema of a table, with the columns' meanings as metadata."""
    return pa.schema(
        [
            pa.field(name, parse_type(kind), metadata={"description": text})
            for name, kind, text in columns
        ]
    )


def parse_type(kind: str) -> pa.DataType:
    """Return the Arrow type of a column's type, such as ``int64`` or ``list<string>``."""
    if kind.startswith("list<"):
        return pa.list_(parse_type(kind.removeprefix("list<").removesuffix(">")))
    return pa.type_for_alias(kind)


def build_frame(rows: Iterable[Sequence[Any]], columns: Columns) -> pd.DataFrame:
    """Convert rows to a frame with the columns' types, even without rows."""
    schema = build_schema(columns)
    values = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [
        pa.array(column, field.type, from_pandas=pa.types.is_string(field.type))  # NaN text is null
        for column, field in zip(values, schema, strict=True)
    ]
    return to_frame(pa.Table.from_arrays(arrays, schema=schema))


def cast_columns(frame: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Return a frame with a table's columns, in their order and with their types."""
    names = [name for name, _, _ in columns]
    return build_frame(frame[names].itertuples(index=False, name=None), columns)


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Convert an Arrow table to a frame, with lists as Python lists.

    Frames from rows and from Parquet are both created in this way, so that writing and reading does
    not change them.
    """
    frame: pd.DataFrame = table.to_pandas()
    for field in table.schema:
        if pa.types.is_list(field.type):
            frame[field.name] = pd.Series(table[field.name].to_pylist(), dtype=object)
    return frame


def write_rows(
    path: Path, rows: Iterable[Sequence[Any]], columns: Columns, metadata: Metadata
) -> None:
    """Write rows in the format of ``write_frame``, in chunks to save memory."""
    left, schema = iter(rows), build_schema(columns).with_metadata(_build_footer(metadata))
    with replace_file(path) as part, pq.ParquetWriter(part, schema, compression="zstd") as writer:
        while chunk := list(islice(left, _CHUNK)):
            writer.write_table(_convert_frame(build_frame(chunk, columns), schema))


def write_frame(path: Path, frame: pd.DataFrame, columns: Columns, metadata: Metadata) -> None:
    """Write a frame with its columns' meanings and the study's metadata, atomically."""
    write_arrow(path, _convert_frame(frame, build_schema(columns)), metadata)


def _convert_frame(frame: pd.DataFrame, schema: pa.Schema) -> pa.Table:
    table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    return table.replace_schema_metadata(schema.metadata)


def write_arrow(path: Path, table: pa.Table, metadata: Metadata | None) -> None:
    """Write an Arrow table atomically, optionally with a study's metadata."""
    footer = {} if metadata is None else _build_footer(metadata)
    with replace_file(path) as part:
        pq.write_table(table.replace_schema_metadata(footer), part, compression="zstd")


def _build_footer(metadata: Metadata) -> dict[bytes, bytes]:
    return {_FOOTER_KEY: json.dumps(asdict(metadata), sort_keys=True).encode()}


def read_frame(path: Path, columns: Columns, remedy: str = REMEDY) -> tuple[pd.DataFrame, Metadata]:
    """Read a frame that was written by ``write_frame``.

    Raises:
        RecordError: the file is missing, damaged, not a table of tasktransfer, or has other
            columns.
    """
    table = _read_arrow(path, remedy)
    footer = (table.schema.metadata or {}).get(_FOOTER_KEY)
    if footer is None:
        raise RecordError(f"{path}: The file is not a table of tasktransfer. {remedy}.")
    names = [name for name, _, _ in columns]
    if table.schema.names != names:
        raise RecordError(
            f"{path}: The columns are {table.schema.names}, but this version of tasktransfer "
            f"expects {names}. {remedy}."
        )
    try:
        return to_frame(table), Metadata(**json_text.loads(footer))
    except (TypeError, ValueError) as error:
        raise RecordError(f"{path}: The footer is damaged ({error}). {remedy}.") from error


def read_statistic_frame(path: Path, remedy: str = REMEDY) -> pd.DataFrame:
    """Read a table whose columns depend on the study.

    Raises:
        RecordError: the file is absent or damaged.
    """
    return to_frame(_read_arrow(path, remedy))


def _read_arrow(path: Path, remedy: str) -> pa.Table:
    try:
        return pq.ParquetFile(path).read()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RecordError(f"{path}: The table cannot be read ({error}). {remedy}.") from error
