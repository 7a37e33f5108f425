"""The predictions of a run: one Parquet file beside its record.

One row per test instance and task. An instance is named by its position in the test split, since
the release's ids may repeat; the id is kept for reading. Its dialogue's id says which instances are
resampled together; files of schema 1 have none, and are read as if it were null.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tasktransfer.errors import RecordError
from tasktransfer.files import replacing
from tasktransfer.metrics import Coded
from tasktransfer.results.records import REMEDY, PredictionsFile
from tasktransfer.results.state import PREDICTIONS

SCHEMA_VERSION = 2
FILE_NAME = PREDICTIONS

_HIGHEST = 100.000001
"""A score of 100 may come out a rounding error above it."""

COLUMNS = pa.schema(
    [
        pa.field("index", pa.int32(), nullable=False),
        pa.field("task", pa.string(), nullable=False),
        pa.field("instance_id", pa.string(), nullable=False),
        pa.field("dialogue_id", pa.string()),
        pa.field("prediction", pa.list_(pa.string()), nullable=False),
        pa.field("gold", pa.list_(pa.string()), nullable=False),
        pa.field("score", pa.float64(), nullable=False),
    ]
)

DIALOGUE = COLUMNS.get_field_index("dialogue_id")
_COLUMNS_OF = {1: COLUMNS.remove(DIALOGUE), SCHEMA_VERSION: COLUMNS}
"""Schema → columns."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer to one test instance.

    ``index`` is the position in the task's test split, from 0; ``prediction`` and ``gold`` hold
    one answer, several labels or traits, or every right answer of a question; ``score`` is the
    instance's own score, 0-100. ``dialogue_id``: the dialogue that the instance is about; None:
    unknown.
    """

    index: int
    task: str
    instance_id: str
    prediction: tuple[str, ...]
    gold: tuple[str, ...]
    score: float
    dialogue_id: str | None = None


def write_predictions(
    path: Path, rows: Iterable[Prediction], *, digest: str, dataset: str
) -> PredictionsFile:
    """Write the predictions of a run atomically.

    Args:
        path: where to, usually ``predictions.parquet`` beside the record.
        rows: in the order of the test split.
        digest: digest of the stage that predicts; it is in the footer, with the dataset and the
            tasks.

    Returns:
        File name, number of rows and SHA-256, as the record holds them.

    Raises:
        RecordError: an index appears twice or is skipped, or a score is not within 0-100.
    """
    kept = list(rows)
    columns = {
        "index": [row.index for row in kept],
        "task": [row.task for row in kept],
        "instance_id": [row.instance_id for row in kept],
        "dialogue_id": [row.dialogue_id for row in kept],
        "prediction": [list(row.prediction) for row in kept],
        "gold": [list(row.gold) for row in kept],
        "score": [row.score for row in kept],
    }
    tasks = "+".join(dict.fromkeys(row.task for row in kept))
    footer = {"schema": str(SCHEMA_VERSION), "stage": digest, "dataset": dataset, "target": tasks}
    table = pa.table(columns, schema=COLUMNS.with_metadata(footer))
    _check_order(path, table)
    _check_values(path, table)
    with replacing(path) as part:
        pq.write_table(table, part, compression="zstd")
        sha256 = _sha256(part)
    return {"file": path.name, "rows": len(kept), "sha256": sha256}


def read_predictions(path: Path, expected: PredictionsFile | None = None) -> pa.Table:
    """Read the predictions of a run, columns as in ``COLUMNS``, footer in ``schema.metadata``.

    A file of schema 1 is given a column ``dialogue_id`` of nulls.

    Args:
        path: the Parquet file.
        expected: what the record says of the file; its rows and SHA-256 are checked then.

    Raises:
        RecordError: the file is absent or damaged, of another schema, lacks instances, has a
            score that is not within 0-100, or is not the one that the record was written with.
    """
    content = _content(path)
    table = _parsed(path, content)
    footer = table.schema.metadata or {}
    schema = footer.get(b"schema")
    if not any(
        schema == str(number).encode() and table.schema == expected_columns
        for number, expected_columns in _COLUMNS_OF.items()
    ):
        raise RecordError(
            f"{path}: not predictions of schema {SCHEMA_VERSION}, nor of an older one: footer "
            f"schema {schema!r}, columns {', '.join(table.schema.names)}"
        )
    if table.schema != COLUMNS:
        unknown = pa.nulls(table.num_rows, pa.string())
        table = table.add_column(DIALOGUE, COLUMNS.field(DIALOGUE), unknown)
    _check_expected(path, table.num_rows, content, expected)
    _check_order(path, table)
    _check_values(path, table)
    return table


def read_columns(path: Path, expected: PredictionsFile, columns: Sequence[str]) -> pa.Table:
    """Some columns of predictions that ``read_predictions`` has read before; that they are the
    same is all that is checked.

    Raises:
        RecordError: the file is absent, or not the one that the record was written with.
    """
    content = _content(path)
    _check_sha256(path, content, expected)
    return _parsed(path, content, columns)


def check_unchanged(path: Path, expected: PredictionsFile) -> None:
    """Raise RecordError unless the file is there and has the SHA-256 that the record names."""
    _check_sha256(path, _content(path), expected)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise RecordError(
            f"{path}: cannot be read: no such file, its record names it; {REMEDY}"
        ) from error
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error


def _parsed(path: Path, content: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        return file.read(columns=columns and list(columns), use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise RecordError(f"{path}: cannot be read as Parquet: {error}") from error


def rows_of(table: pa.Table, task: str) -> pa.Table:
    """The rows of one task, in the order of its test split."""
    import pyarrow.compute as pc  # slow to import, and a training only writes predictions

    if table.num_rows and pc.all(pc.equal(table["task"], task)).as_py():
        return table
    return table.filter(pc.equal(table["task"], task))


def answers(column: pa.ChunkedArray) -> Coded:
    """A column of answers (``prediction`` or ``gold``) as the metrics count them."""
    import pyarrow.compute as pc

    lists = column.combine_chunks()
    encoded = lists.flatten().dictionary_encode()
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(pc.list_value_length(lists).to_numpy(zero_copy_only=False), out=starts[1:])
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return Coded(encoded.dictionary.to_pylist(), codes, starts)


def _check_expected(
    path: Path, rows: int, content: bytes, expected: PredictionsFile | None
) -> None:
    if expected is None:
        return
    if rows != expected["rows"]:
        raise RecordError(f"{path}: {rows} rows, the record says {expected['rows']}")
    _check_sha256(path, content, expected)


def _check_sha256(path: Path, content: bytes, expected: PredictionsFile) -> None:
    if hashlib.sha256(content).hexdigest() != expected["sha256"]:
        raise RecordError(f"{path}: its SHA-256 is not the one in the record beside it; {REMEDY}")


def _check_order(path: Path, table: pa.Table) -> None:
    tasks = table["task"].combine_chunks().dictionary_encode()
    codes = tasks.indices.to_numpy(zero_copy_only=False)
    indices = table["index"].to_numpy()
    for code, task in enumerate(tasks.dictionary.to_pylist()):
        _check_rows(path, task, indices[codes == code])


def _check_rows(path: Path, task: str, indices: npt.NDArray[np.int32]) -> None:
    """A task's rows are the positions 0, 1, 2, ... in order: none twice, none left out."""
    wrong = np.flatnonzero(indices != np.arange(len(indices)))
    if wrong.size:
        raise RecordError(
            f"{path}: {task}: expected instance {wrong[0]} of the test split, found "
            f"{indices[wrong[0]]}; rows are missing, repeated or out of order"
        )


def _check_values(path: Path, table: pa.Table) -> None:
    scores = table["score"].to_numpy()
    wrong = np.flatnonzero(~((scores >= 0) & (scores <= _HIGHEST)))
    if wrong.size:
        name = table["instance_id"][int(wrong[0])]
        raise RecordError(
            f"{path}: instance {name}: score {scores[wrong[0]]}, expected between 0 and 100"
        )
    for column in ("prediction", "gold"):
        if any(chunk.flatten().null_count for chunk in table[column].chunks):
            raise RecordError(f"{path}: {column}: an answer is null; run the stage again")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
