"""Rows of a node: a Parquet file beside its record, with one row per evaluated instance and task.

An instance is identified by its position, since ids in a release may repeat; the id is kept for
reading. Instances with the same ``cluster`` (their dialogue or context) are resampled together.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from tasktransfer.errors import RecordError
from tasktransfer.files import compute_sha256, replace_file
from tasktransfer.files.untrusted import read_regular
from tasktransfer.metrics import CodedAnswers
from tasktransfer.results.records import REMEDY, read_record
from tasktransfer.results.schema import RowsFile
from tasktransfer.results.state import ROWS

SCHEMA_VERSION = 3

_HIGHEST = 100.000001
"""Highest valid score: 100 plus a tolerance for rounding errors."""

COLUMNS = pa.schema(
    [
        pa.field("index", pa.int32(), nullable=False),
        pa.field("task", pa.string(), nullable=False),
        pa.field("instance_id", pa.string(), nullable=False),
        pa.field("prediction", pa.list_(pa.string()), nullable=False),
        pa.field("gold", pa.list_(pa.string()), nullable=False),
        pa.field("score", pa.float64()),
        pa.field("cluster", pa.string()),
        pa.field("split", pa.string()),
        pa.field("predicted_value", pa.float64()),
        pa.field("gold_value", pa.float64()),
        pa.field("probabilities", pa.list_(pa.float64())),
        pa.field("log_likelihood", pa.float64()),
        pa.field("rank", pa.int64()),
    ]
)
_NEVER_NULL = tuple(column.name for column in COLUMNS if not column.nullable)


@dataclass(frozen=True, slots=True)
class Row:
    """One instance of a task.

    ``index``: position among the task's rows, from 0; for a training, its position in the test
    split. ``prediction`` and ``gold``: one answer, several labels or traits, or all gold answers to
    a question, as text. ``predicted_value`` and ``gold_value``: numbers such as ratings. ``score``:
    correctness, 0-100; None if not defined. ``cluster``: dialogue or context that it shares with
    other instances; None if unknown. ``probabilities``: probabilities of the task's labels, in
    their order. ``log_likelihood``: log-likelihood of the gold answer, in nats. ``rank``: rank of
    the gold answer, from 1. Values that do not apply are None.
    """

    index: int
    task: str
    instance_id: str
    prediction: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    score: float | None = None
    cluster: str | None = None
    split: str | None = "test"
    predicted_value: float | None = None
    gold_value: float | None = None
    probabilities: tuple[float, ...] | None = None
    log_likelihood: float | None = None
    rank: int | None = None


def write_rows(
    folder: Path, rows: Iterable[Row], *, digest: str, dataset: str, file: str = ROWS
) -> RowsFile:
    """Write the rows of a node atomically.

    Args:
        folder: the node's folder.
        rows: rows in the order of the split, one task after the other.
        digest: digest of the node, stored in the footer with the dataset and the tasks.
        dataset: name of the dataset.
        file: name of the file.

    Returns:
        File name, number of rows and SHA-256, for the record.

    Raises:
        RecordError: an index appears twice or is skipped, or a score is not within 0-100.
    """
    return write_rows_table(
        folder, _build_table(list(rows)), digest=digest, dataset=dataset, file=file
    )


def write_rows_table(
    folder: Path, rows: pa.Table, *, digest: str, dataset: str, file: str = ROWS
) -> RowsFile:
    """Write a table with the columns of ``COLUMNS`` atomically, as ``write_rows`` does."""
    path, tasks = folder / file, rows["task"].unique().to_pylist()
    footer = {"schema": str(SCHEMA_VERSION), "node": digest, "dataset": dataset}
    table = rows.replace_schema_metadata({**footer, "target": "+".join(tasks)})
    _check_order(path, table)
    _check_values(path, table)
    folder.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as part:
        pq.write_table(table, part, compression="zstd")
        sha256 = compute_sha256(part)
    return {"file": file, "rows": table.num_rows, "sha256": sha256}


def _build_table(rows: Sequence[Row]) -> pa.Table:
    """Convert rows to an Arrow table via JSON.

    Arrow converts Python objects with pandas, whose import would cost each training 0.3 s.
    """
    columns = {field.name: [getattr(row, field.name) for row in rows] for field in fields(Row)}
    lines = (
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    )
    try:
        text = "\n".join(json.dumps(line, allow_nan=False) for line in lines).encode()
    except ValueError:  # NaN and infinity are not valid JSON
        return pa.table(columns, schema=COLUMNS)
    if not text:
        return COLUMNS.empty_table()
    whole = pj.ReadOptions(use_threads=False, block_size=len(text))
    typed = pj.ParseOptions(explicit_schema=COLUMNS, unexpected_field_behavior="error")
    return pj.read_json(io.BytesIO(text), whole, typed).select(COLUMNS.names).cast(COLUMNS)


def read_rows(
    path: Path, expected: RowsFile | None = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """Read the rows of a node as a table with ``COLUMNS``.

    The footer of the file is in ``schema.metadata``.

    Args:
        path: the file.
        expected: the record's entry about the file; None to skip the comparison.
        columns: columns to read in addition to the columns that are checked, which takes half the
            time of reading all; None to read all.

    Raises:
        RecordError: the file is missing, truncated, has another schema, has missing or repeated
            rows or scores outside 0-100, or is not the file that the record describes.
    """
    content = _read_content(path)
    wanted = COLUMNS.names
    if columns is not None:
        wanted = [name for name in wanted if name in (*_NEVER_NULL, "score", *columns)]
    read = _parse_table(path, content, None if columns is None else wanted)
    table = _cast_columns(path, read, wanted)
    if expected is not None:
        if table.num_rows != expected["rows"]:
            raise RecordError(
                f"{path}: The table has {table.num_rows} rows, but its record says "
                f"{expected['rows']}"
            )
        _check_sha256(path, content, expected)
    _check_order(path, table)
    _check_values(path, table)
    return table


def _cast_columns(path: Path, table: pa.Table, wanted: Sequence[str]) -> pa.Table:
    """Check the schema of a table, and cast it to the types of ``COLUMNS``."""
    footer = table.schema.metadata or {}
    version, names = footer.get(b"schema"), table.schema.names
    if version == str(SCHEMA_VERSION).encode() and names == list(wanted):
        try:
            return table.cast(pa.schema([COLUMNS.field(name) for name in wanted], footer))
        except (ValueError, pa.ArrowException):
            pass
    raise RecordError(
        f"{path}: The columns of the table must match schema {SCHEMA_VERSION}, but the table has "
        f"schema {version!r} with the columns {', '.join(names)}"
    )


def read_record_rows(record: Path) -> pa.Table:
    """Return a node's rows, given the path of its record, after checking both files.

    The table is empty if the record does not list a file of rows.

    Raises:
        RecordError: as ``read_record`` and ``read_rows``.
    """
    named = read_record(record)["rows"]
    return read_rows(record.with_name(named["file"]), named) if named else COLUMNS.empty_table()


def read_columns(path: Path, expected: RowsFile, columns: Sequence[str]) -> pa.Table:
    """Read some columns of rows that ``read_rows`` has already checked.

    Only the file's SHA-256 is checked again.

    Raises:
        RecordError: the file is missing, or is not the file that the record describes.
    """
    content = _read_content(path)
    _check_sha256(path, content, expected)
    return _parse_table(path, content, columns).select(columns)


def check_unchanged(path: Path, expected: RowsFile) -> None:
    """Raise RecordError unless the file exists and its SHA-256 matches the record."""
    _check_sha256(path, _read_content(path), expected)


def read_node_digest(table: pa.Table) -> str:
    """Read the node digest from the footer of a rows file, or return "" without one."""
    footer = table.schema.metadata or {}
    return bytes(footer.get(b"node") or b"").decode("utf-8", "replace")


def select_task_rows(table: pa.Table, task: str) -> pa.Table:
    """Return the rows of one task in their stored order."""
    import pyarrow.compute as pc  # noqa: PLC0415  # slow to import, and a training only writes rows

    if table.num_rows and pc.all(pc.equal(table["task"], task)).as_py():
        return table
    return table.filter(pc.equal(table["task"], task))


def encode_answers(column: pa.ChunkedArray) -> CodedAnswers:
    """Encode a column of answers (``prediction`` or ``gold``) for the metrics."""
    import pyarrow.compute as pc  # noqa: PLC0415

    lists = column.combine_chunks()
    encoded = lists.flatten().dictionary_encode()
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(pc.list_value_length(lists).to_numpy(zero_copy_only=False), out=starts[1:])
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return CodedAnswers(encoded.dictionary.to_pylist(), codes, starts)


def _read_content(path: Path) -> bytes:
    try:
        return read_regular(path)
    except FileNotFoundError as error:
        raise RecordError(
            f"{path}: The file does not exist, but its record lists it. {REMEDY}."
        ) from error
    except OSError as error:
        raise RecordError(
            f"{path}: The file cannot be read ({error.strerror}). Check the permissions of the "
            "file."
        ) from error


def _parse_table(path: Path, content: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """Parse a Parquet file, with all columns or only ``columns``."""
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        return file.read(columns=columns and list(columns), use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise RecordError(f"{path}: The file cannot be read as Parquet ({error})") from error


def _check_sha256(path: Path, content: bytes, expected: RowsFile) -> None:
    if hashlib.sha256(content).hexdigest() != expected["sha256"]:
        raise RecordError(f"{path}: The SHA-256 of the file does not match its record. {REMEDY}.")


def _check_order(path: Path, table: pa.Table) -> None:
    """Raise RecordError unless each task's positions are 0, 1, 2, … in order."""
    tasks = table["task"].combine_chunks().dictionary_encode()
    codes, indices = _convert_array(tasks.indices), _convert_array(table["index"].combine_chunks())
    for code, task in enumerate(tasks.dictionary.to_pylist()):
        of_task = indices[codes == code]
        wrong = np.flatnonzero(of_task != np.arange(len(of_task)))
        if wrong.size:
            raise RecordError(
                f"{path}: The task {task} has the instance {of_task[wrong[0]]} in place of the "
                f"split's instance {wrong[0]}, because rows are missing, repeated or out of order"
            )


def _convert_array(array: pa.Array) -> npt.NDArray[Any]:
    """Convert an Arrow array without nulls to numpy, without importing pandas."""
    kinds = {pa.int32(): np.int32, pa.float64(): np.float64}
    kind = np.dtype(kinds[array.type])
    *_, buffer = array.buffers()
    return np.frombuffer(buffer, kind, len(array), array.offset * kind.itemsize)


def _check_values(path: Path, table: pa.Table) -> None:
    """Raise RecordError if a score is not within 0-100, or a required column contains null."""
    scores = _convert_array(table["score"].combine_chunks().drop_null())
    if not ((scores >= 0) & (scores <= _HIGHEST)).all():
        names = zip(table["instance_id"].to_pylist(), table["score"].to_pylist(), strict=True)
        name, wrong = next(
            (name, score)
            for name, score in names
            if score is not None and not 0 <= score <= _HIGHEST
        )
        raise RecordError(
            f"{path}: Instance {name} has score {wrong}, but a score must be a number from 0 to 100"
        )
    for column in _NEVER_NULL:
        values = table[column]
        lists = pa.types.is_list(values.type)
        nulls = values.null_count + (
            sum(chunk.flatten().null_count for chunk in values.chunks) if lists else 0
        )
        if nulls:
            raise RecordError(f"{path}: The column {column} contains null. Compute the node again.")
