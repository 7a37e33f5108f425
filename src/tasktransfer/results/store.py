"""Frames as self-describing Parquet files, with the metadata of their study.

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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import tasktransfer
from tasktransfer.errors import RecordError
from tasktransfer.files import json_text, replace_file
from tasktransfer.results.frames import Columns

Order = Mapping[str, Sequence[str]]
"""Kind of name ("dataset", "model", "algorithm", "task") → names in the study's order."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """Metadata in the footer of every table."""

    study: str
    config_digest: str
    synthetic: bool
    """True if the dialogues of any dataset are synthetic."""
    records: int
    """Number of records behind the tables."""
    version: str = tasktransfer.__version__
    shorts: Mapping[str, str] = field(default_factory=dict)
    """Task → its short name in figures."""
    order: Order = field(default_factory=dict)
    """Order of rows, panels and axes, which does not depend on missing runs."""
    real: Sequence[str] = field(default_factory=list)
    """Datasets with real dialogues, if those of another dataset are synthetic."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """The design's facts on the whole study, for captions; each design defines its keys."""
    cuts: str = ""
    """Settings that subsample the data, such as ``limit_test 1200``."""

    def is_synthetic(self, dataset: str) -> bool:
        """Return whether a dataset's dialogues are synthetic."""
        return self.synthetic and dataset not in self.real

    def order_names(self, kind: str, names: Iterable[str]) -> list[str]:
        """Return the distinct names of a kind (such as method) in the study's order."""
        return order_names(names, self.order.get(kind, ()))


def format_synthetic_mark(real: Sequence[str]) -> str:
    """Return the mark for synthetic dialogues, which also lists datasets with real dialogues."""
    but = f", but {' and '.join(real)} {'is' if len(real) == 1 else 'are'} real" if real else ""
    return f"SYNTHETIC (tiny world){but}. "


def order_names(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """Sort distinct names by ``order``, with unlisted names at the end."""
    listed = list(dict.fromkeys(names))
    return [name for name in order if name in listed] + [n for n in listed if n not in order]


def sort_rows(frame: pd.DataFrame, columns: Mapping[str, str], order: Order) -> pd.DataFrame:
    """Sort rows by columns that contain names.

    Args:
        columns: column → kind of its names, such as ``task``; see ``Order``.
    """
    ranks = {
        column: {
            name: rank for rank, name in enumerate(order_names(frame[column], order.get(kind, ())))
        }
        for column, kind in columns.items()
    }
    return frame.sort_values(
        list(columns), key=lambda values: values.map(ranks[str(values.name)]), ignore_index=True
    )


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


def build_table(rows: Iterable[Sequence[Any]], columns: Columns) -> pa.Table:
    """Convert rows to an Arrow table with the declared types of its columns.

    An empty table has these types, too. NaN becomes null, except inside lists.
    """
    schema = build_schema(columns)
    values = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [
        pa.array(column, field.type, from_pandas=not pa.types.is_list(field.type))
        for column, field in zip(values, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def build_frame(rows: Iterable[Sequence[Any]], columns: Columns) -> pd.DataFrame:
    """Convert rows to a frame with the declared types of its columns (``build_table``)."""
    return to_frame(build_table(rows, columns))


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
    for column in table.schema:
        if pa.types.is_list(column.type):
            frame[column.name] = pd.Series(table[column.name].to_pylist(), dtype=object)
    return frame


def write_rows(
    path: Path, rows: Iterable[Sequence[Any]], columns: Columns, metadata: Metadata
) -> None:
    """Write rows in the format of ``write_frame``, in chunks to save memory."""
    left, schema = iter(rows), build_schema(columns).with_metadata(_build_footer(metadata))
    with replace_file(path) as part, pq.ParquetWriter(part, schema, compression="zstd") as writer:
        while chunk := list(islice(left, _CHUNK)):
            table = build_table(chunk, columns)
            writer.write_table(table.replace_schema_metadata(schema.metadata))


def write_frame(path: Path, frame: pd.DataFrame, columns: Columns, metadata: Metadata) -> None:
    """Write a frame with its columns' meanings and the study's metadata, atomically."""
    table = pa.Table.from_pandas(frame, schema=build_schema(columns), preserve_index=False)
    write_arrow(path, table, metadata)


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
